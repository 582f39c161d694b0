"""What a kernel parameter is, judged by its name and its use: data for inputs that satisfy what the kernel assumes.

The vocabulary is that of vLLM, SGLang and their kernels. A caller who knows better (buffer facts, a kernel model) passes hints instead.
"""

from __future__ import annotations

import re
from typing import Literal

Role = Literal[
    "offset",
    "index",
    "owner",
    "length",
    "count",
    "flag",
    "padding-flag",
    "table",
    "position",
    "token",
    "slot",
    "stride",
    "size",
    "value",
    "pointers",
]

_WORDS: tuple[tuple[str, Role], ...] = (
    (r"_ptrs$|_pointers$|ptr_table|ptrs_ptr$", "pointers"),
    (r"stride", "stride"),
    (r"is_pad|padding_mask|pad_mask|is_dummy", "padding-flag"),
    (r"^is_|_is_|valid|has_|_mask$|masks?$|flag|enabled", "flag"),
    (r"start_loc|cu_.*len|cu_seq|indptr|offsets?$|_offs$|cumsum|cu_num|cum_|start_idx", "offset"),
    (r"token_to_req|req_id_per|seq_idx|token_to_seq|batch_id|token_to_batch|req_indices_per|tok.*req.*ind", "owner"),
    (r"(^|_)tables?$|block_tables?$|page_tables?$|req_to_token|block_ids|kv_indices|page_ids|block_table|page_table", "table"),
    (r"slot|cache_loc|out_loc", "slot"),
    (r"mapping|indices|_idx$|index|_idxs$|perm|sorted|row_ids", "index"),
    (r"block_sizes?$|page_sizes?$", "size"),
    (r"pos$|positions?|_pos_", "position"),
    (r"seq_?lens?|_lens?$|lengths?|kv_len|context_len|num_computed|query_len", "length"),
    (r"(^|_)num_|(^|_)n_|counts?$|accept|reject|sampled_len|_cnt", "count"),
    (r"token|ids?$|sampled", "token"),
)
_FLOAT = re.compile(
    r"hidden|logit|logprob|temperature|scale|prob|weight|query|key|value|cache|state|embed|output|lse|acc|sum|max_?$|softmax|bias|norm|gate|top_p|penalt|^[qkvox]$|^out$|attn"
)


def bare(name: str) -> str:
    """A parameter's name without what marks it as a pointer."""
    name = name.rsplit(".", 1)[-1].lower().strip("_")
    return re.sub(r"_(ptr|pointer|gpu|buf|buffer|tensor)$", "", name)


def pointer_role(name: str) -> Role:
    """The role a pointer's name speaks of; "value" when it says nothing."""
    low = name.lower().strip("_")
    if re.search(r"_ptrs$|_pointers$|ptrs_ptr$", low):
        return "pointers"
    short = bare(name)
    for pattern, role in _WORDS[1:]:
        if re.search(pattern, short):
            return role
    return "value"


def is_float(name: str) -> bool:
    """A buffer of floats, by its name."""
    return pointer_role(name) == "value" and bool(_FLOAT.search(bare(name)))


_CONSTANT_SIZES = (
    (r"max_model_len|max_seq_?len|max_context|max_position", "4096"),
    (r"(block|page)_size|page_len|tokens_per_(block|page)", "page"),
    (r"window", "8"),
    (r"index_width|topk|top_k|n_top", "8"),
    (r"vocab", "128"),
    (r"hidden_size|head_dim|head_size|dim$|width|hidden$|n_cols|num_cols|d_model", "16"),
    (r"num_heads|n_heads|kv_heads|q_heads|num_experts", "2"),
    (r"max_num_blocks|max_blocks|max_pages|num_blocks|blocks_per", "4"),
    (r"rank|_offset$|^offset|start$|begin", "0"),
    (r"world_size|cp_size|tp_size|dcp|interleave|groups?$", "1"),
    (r"per_(req|seq|bs|batch)|next_n|query_len|q_len|uniform", "q"),
    (r"spec|draft|steps?$|num_layers|mtp", "q"),
    (r"numel|num_elements|n_elements", "live_tokens * 16"),
    (r"fill|pad_id|pad_value|sentinel|null|token_id$", "0"),
    (r"eps", "0.00001"),
    (r"scale", "1.0"),
)


def count_of(name: str, siblings: frozenset[str] = frozenset()) -> str | None:
    """The extent a scalar's name speaks of, e.g. "live_reqs", "cap_tokens", or None when it names no batch extent."""
    short = bare(name)
    unit = None
    if re.search(r"tokens?$|tokens?_|_tok$|toks$|num_tok|num_q$|total_q|n_tok", short) and not re.search(r"token_id|per_token$", short):
        unit = "tokens"
    elif (
        re.search(r"req(s|uests?)?($|_)|seqs?($|_)|batch|(^|_)bs($|_)|decodes?$|prefills?$|num_rows|n_rows|(^|_)b$", short)
        and "len" not in short
    ):
        unit = "reqs"
    if unit is None or re.search(
        r"per_(req|seq|bs|batch)|_(id|idx|ids|index)$|_size_|stride|block|offset|program|front|fill|(^|_)off(_|$)|start", short
    ):
        return None
    if re.search(r"(^|_)max|capacity|(^|_)cap(_|$)", short):
        return f"cap_{unit}"
    if re.search(r"pad", short):
        return f"padded_{unit}"
    if re.search(r"raw|actual|real|live|valid|unpadded", short):
        return f"live_{unit}"
    # `bs` beside `raw_bs` is the padded one
    others = siblings - {name}
    if any(re.search(r"raw_|actual_|unpadded_|live_", other) and bare(other).endswith(short) for other in others):
        return f"padded_{unit}"
    return f"live_{unit}"


def scalar(name: str, siblings: frozenset[str] = frozenset()) -> str:
    """The value of a scalar parameter as an expression over the extents of a step."""
    short = bare(name)
    if "stride" in short:
        return "row"
    if re.search(r"(block|page)_size|max_num_blocks|numel", short):
        return next(text for pattern, text in _CONSTANT_SIZES if re.search(pattern, short))
    extent = count_of(name, siblings)
    if extent is not None:
        return extent
    return next((text for pattern, text in _CONSTANT_SIZES if re.search(pattern, short)), "1")

"""What a model's `config.json`, or its name, says that graph modes depend on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import msgspec

from graphlint.config.tables import Tables


@dataclass
class ModelFacts:
    """Architecture traits; None is unknown. Counts are per model, not per rank."""

    architecture: str | None = None
    moe: bool | None = None
    hybrid: bool | None = None
    mla: bool | None = None
    sparse: bool | None = None
    pooling: bool | None = None
    encoder_decoder: bool | None = None
    multimodal: bool | None = None
    compiled: bool | None = None
    compiled_rocm: bool | None = None
    chunked_attention: bool | None = None
    quantized: bool | None = None
    mm_prefix: bool | None = None
    linear_attention: str | None = None
    num_heads: int | None = None
    num_kv_heads: int | None = None
    head_dim: int | None = None
    max_positions: int | None = None
    gpt_oss: bool | None = None
    source: str = ""


_ENCODER_DECODER = re.compile(r"Whisper|Bart|T5|Florence2|NemotronParse|CohereAsr|MoonshineStreaming|FireRedASR")
_MOE_KEYS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_experts_per_tok", "moe_intermediate_size")


def from_config(config: dict[str, Any], tables: Tables | None) -> ModelFacts:
    """Facts of a Hugging Face `config.json`; a nested `text_config` counts as the language model's."""
    text = config.get("text_config") or config.get("llm_config") or config.get("thinker_config", {}).get("text_config") or {}
    merged: dict[str, Any] = {**config, **{k: v for k, v in text.items() if v is not None}}
    architectures = config.get("architectures") or []
    architecture = architectures[0] if architectures else None
    facts = from_architecture(architecture, tables) if architecture else ModelFacts()
    facts.source = "model config"
    facts.moe = any(merged.get(k) for k in _MOE_KEYS) or bool(facts.moe)
    kv_rank = merged.get("kv_lora_rank")
    facts.mla = kv_rank is not None or bool(merged.get("use_mla")) or bool(facts.mla and "Deepseek" in (architecture or ""))
    facts.sparse = merged.get("index_topk") is not None
    layer_types = merged.get("layer_types") or []
    facts.hybrid = bool(facts.hybrid) or any("linear" in str(t) or "mamba" in str(t) for t in layer_types)
    facts.linear_attention = _linear(architecture or "", merged, layer_types) if facts.hybrid else None
    facts.encoder_decoder = bool(config.get("is_encoder_decoder"))
    facts.chunked_attention = merged.get("attention_chunk_size") is not None
    facts.quantized = merged.get("quantization_config") is not None
    facts.multimodal = bool(facts.multimodal) or "vision_config" in config or "audio_config" in config
    facts.num_heads = _int(merged.get("num_attention_heads"))
    facts.num_kv_heads = _int(merged.get("num_key_value_heads")) or facts.num_heads
    hidden = _int(merged.get("hidden_size"))
    facts.head_dim = _int(merged.get("head_dim")) or (hidden // facts.num_heads if hidden and facts.num_heads else None)
    facts.max_positions = _int(merged.get("max_position_embeddings"))
    facts.gpt_oss = merged.get("model_type") == "gpt_oss" or architecture == "GptOssForCausalLM"
    if facts.compiled is None:
        facts.compiled = True
    return facts


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _linear(architecture: str, merged: dict[str, Any], layer_types: list[Any]) -> str:
    if re.search(r"Qwen3Next|Qwen3_5|Qwen3\.5|Gdn|OlmoHybrid|Kimi", architecture) or any("linear_attention" in str(t) for t in layer_types):
        return "GDN_ATTN"
    if re.search(r"Lfm2", architecture):
        return "SHORT_CONV"
    if re.search(r"MiniMax|Bailing", architecture):
        return "LINEAR"
    return "MAMBA1" if re.search(r"Jamba|Mamba(?!2)", architecture) and "Mamba2" not in architecture else "MAMBA2"


def from_architecture(architecture: str, tables: Tables | None) -> ModelFacts:
    """Facts that follow from the architecture's name and the release's registry."""
    traits = tables.architectures.get(architecture) if tables is not None else None
    facts = ModelFacts(architecture=architecture, source=f"architecture {architecture}")
    if traits is not None:
        facts.hybrid = "hybrid" in traits
        facts.multimodal = "multimodal" in traits
        facts.pooling = True if "pooling" in traits else None
        facts.compiled = "uncompiled" not in traits
        facts.compiled_rocm = "uncompiled-rocm" not in traits
        facts.moe = True if "moe" in traits else None
    facts.encoder_decoder = bool(_ENCODER_DECODER.search(architecture))
    if re.search(r"Deepseek(V2|V3|V32|V4)|KimiK2|KimiK25|GlmMoeDsa|Glm5|LongcatFlash", architecture):
        facts.mla, facts.moe = True, True
        facts.sparse = bool(re.search(r"V32|V4|GlmMoeDsa|Glm5", architecture))
        facts.hybrid = False
    elif facts.mla is None:
        facts.mla = False
    if re.search(r"Moe|MoE|GptOss|Mixtral|Llama4|MiniMax", architecture):
        facts.moe = True
    facts.gpt_oss = architecture == "GptOssForCausalLM"
    if re.search(r"Llama4", architecture):
        facts.chunked_attention = True
    if facts.hybrid:
        facts.linear_attention = _linear(architecture, {}, [])
    return facts


@lru_cache(maxsize=1)
def _names() -> list[tuple[re.Pattern[str], str, dict[str, bool]]]:
    data = resources.files("graphlint.config").joinpath("data").joinpath("model_names.json").read_bytes()
    return [(re.compile(p, re.I), arch, traits) for p, arch, traits in msgspec.json.decode(data)]


def from_name(name: str, tables: Tables | None) -> ModelFacts:
    """Facts that a well-known model's name implies. Everything is unknown for other names."""
    for pattern, architecture, traits in _names():
        if pattern.search(name):
            facts = from_architecture(architecture, tables) if architecture else ModelFacts()
            for trait, value in traits.items():
                setattr(facts, trait, value)
            facts.source = f"the model's name ({name})"
            return facts
    return ModelFacts()

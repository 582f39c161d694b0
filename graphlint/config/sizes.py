"""Capture sizes, in tokens, as vLLM computes them; and the decode requests that they cover.

`capture_sizes` is `VllmConfig._set_cudagraph_sizes` (0.11.1 to 0.33.0) and its predecessor of 0.10.1 to 0.11.0; `round_for_spec_decode`
is `CompilationConfig.adjust_cudagraph_sizes_for_spec_decode`. Both are compared with the released methods by the ecosystem tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from graphlint.config.versions import V, Version


class StartupError(Exception):
    """The server stops while starting; `kind` is the exception that vLLM raises."""

    def __init__(self, kind: str, message: str, symbol: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.symbol = symbol


@dataclass(frozen=True)
class SizeRequest:
    """What capture sizes depend on. Sizes and limits are tokens, `max_num_seqs` is requests, `query_len` tokens per request."""

    max_num_seqs: int
    max_num_batched_tokens: int
    query_len: int = 1
    user_sizes: tuple[int, ...] | None = None
    user_max: int | None = None
    tensor_parallel: int = 1
    sequence_parallel: bool = False
    blackwell: bool = False
    interactivity: bool = False
    #: (query length, widest batch in requests) per tier of dynamic speculative decoding
    tiers: tuple[tuple[int, int], ...] = ()
    #: `--cuda-graph-sizes` of 0.10.1 to 0.12.0: one value is a maximum, several are the list
    legacy_sizes: tuple[int, ...] = ()


@dataclass
class Sizes:
    """The final list and what happened to the user's values."""

    sizes: list[int]
    truncated_from: int | None = None
    dropped: list[int] = field(default_factory=list)

    @property
    def largest(self) -> int:
        """The widest captured batch in tokens; 0 without graphs."""
        return self.sizes[-1] if self.sizes else 0


_SYMBOL = "VllmConfig._set_cudagraph_sizes"


def capture_sizes(request: SizeRequest, version: Version) -> Sizes:
    """Capture sizes before the speculative-decoding rounding. Raises StartupError."""
    if version < V("0.11.1"):
        return _capture_sizes_v010(request)
    limit = request.max_num_batched_tokens
    uniform: list[int] = []
    if request.user_max is None:
        ceiling = 1024 if request.blackwell and version >= V("0.28.0") else 512
        query_len = request.query_len if version >= V("0.13.0") else 1
        largest = min(request.max_num_seqs * query_len * 2, ceiling)
        if version >= V("0.29.0"):
            uniform = _uniform_sizes(request, ceiling, largest, version)
    else:
        largest = request.user_max
    largest = min(limit, largest)
    if largest < 1:
        raise StartupError("AssertionError", "Maximum cudagraph size should be greater than or equal to 1 when using cuda graph.", _SYMBOL)
    if request.user_sizes is not None:
        if not request.user_sizes:
            raise StartupError(
                "AssertionError", "cudagraph_capture_sizes should contain at least one element when using cuda graph.", _SYMBOL
            )
        sizes = sorted({s for s in request.user_sizes if s <= limit})
    else:
        sizes = _grid(largest, request.interactivity and version >= V("0.17.0"))
        if version >= V("0.20.2") and limit <= largest and limit not in sizes:
            sizes.append(limit)
        sizes = sorted({*sizes, *(s for s in uniform if s <= limit)})
    if version < V("0.32.0") and request.tensor_parallel > 1 and request.sequence_parallel:
        sizes = [s for s in sizes if s % request.tensor_parallel == 0]
    valid = sizes[-1] if sizes else 0
    out = Sizes(sizes)
    if request.user_max is not None and request.user_max != valid:
        if request.user_sizes is not None:
            raise StartupError(
                "ValueError",
                f"max_cudagraph_capture_size (={request.user_max}) and the largest of cudagraph_capture_sizes (={valid}) differ",
                _SYMBOL,
            )
        out.truncated_from = request.user_max
    if request.user_sizes is not None:
        out.dropped = sorted(set(request.user_sizes) - set(sizes))
    return out


def _capture_sizes_v010(request: SizeRequest) -> Sizes:
    given = request.legacy_sizes or (min(request.max_num_seqs * 2, 512),)
    sizes = [1, 2, 4, *range(8, given[0] + 1, 8)] if len(given) == 1 else sorted(given)
    if request.tensor_parallel > 1 and request.sequence_parallel:
        sizes = [s for s in sizes if s % request.tensor_parallel == 0]
    sizes = [s for s in sizes if s <= request.max_num_batched_tokens]
    if request.user_sizes is not None:
        # `init_with_cudagraph_sizes` takes the user's list as it is
        sizes = sorted(set(request.user_sizes))
    return Sizes(sizes)


def _grid(largest: int, interactivity: bool) -> list[int]:
    sizes = list(range(1, min(largest, 32) + 1)) if interactivity else [s for s in (1, 2, 4) if s <= largest]
    if largest >= 8:
        sizes += range(8, min(largest + 1, 256), 8)
    if largest >= 256:
        sizes += range(256, largest + 1, 16)
    return sizes


def _uniform_sizes(request: SizeRequest, ceiling: int, largest: int, version: Version) -> list[int]:
    if request.query_len <= 1:
        return [request.max_num_seqs] if version >= V("0.31.0") and request.max_num_seqs <= largest else []
    tiers = request.tiers or ((request.query_len, request.max_num_seqs),)
    out = set()
    for query_len, most in tiers:
        most = min(most, ceiling)
        counts = {n for n in (1, 2, 4) if n <= most} | set(range(8, min(most + 1, 256), 8)) | set(range(256, most + 1, 16)) | {most}
        out |= {n * query_len for n in counts if n * query_len <= largest}
    return sorted(out)


def round_for_spec_decode(
    sizes: Sizes, query_len: int, version: Version, tensor_parallel: int = 1, sequence_parallel: bool = False
) -> Sizes:
    """Sizes as multiples of the tokens per request (model runner V1, 0.11.1 and later). Raises StartupError."""
    symbol = "CompilationConfig.adjust_cudagraph_sizes_for_spec_decode"
    if query_len <= 1:
        return sizes
    multiple = query_len
    # 0.11.1 asks for multiples of the tensor-parallel size even without sequence parallelism
    if version < V("0.32.0") and tensor_parallel > 1 and (sequence_parallel or version == V("0.11.1")):
        multiple = max(query_len, tensor_parallel)
        if multiple % query_len or multiple % tensor_parallel:
            raise StartupError(
                "ValueError",
                f"no size is a multiple of both {query_len} (num_speculative_tokens + 1) and {tensor_parallel} (tensor parallel size, for "
                "sequence parallelism)",
                symbol,
            )
    if not sizes.sizes:
        return sizes
    largest = sizes.largest
    rounded = sorted({-(-s // multiple) * multiple for s in sizes.sizes if -(-s // multiple) * multiple <= largest})
    if not rounded and version >= V("0.12.0"):
        if multiple > largest:
            raise StartupError(
                "ValueError",
                f"no capture size is left after rounding to multiples of {multiple} (num_speculative_tokens + 1): the largest is {largest}",
                symbol,
            )
        rounded = [multiple]
    return Sizes(rounded or sizes.sizes, sizes.truncated_from, sizes.dropped)


def full_decode_sizes(sizes: list[int], query_len: int, max_num_seqs: int, v2: bool) -> list[int]:
    """Sizes for which a FULL graph of a uniform decode batch is captured."""
    widest = max_num_seqs * query_len
    if v2:
        largest = sizes[-1] if sizes else 0
        rounded = {-(-s // query_len) * query_len for s in sizes}
        return sorted(s for s in rounded if s <= largest and s <= widest)
    return [s for s in sizes if query_len <= s <= widest and s % query_len == 0]


def covered_requests(sizes: list[int], query_len: int, max_num_seqs: int, v2: bool) -> int:
    """The widest decode batch, in requests, that a FULL graph is replayed for."""
    usable = full_decode_sizes(sizes, query_len, max_num_seqs, v2)
    if usable:
        return min(usable[-1] // query_len, max_num_seqs)
    return min(max(sizes, default=0) // query_len, max_num_seqs) if sizes and sizes[-1] >= max_num_seqs * query_len else 0

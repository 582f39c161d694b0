"""The two rewrites at the heart of the mode's resolution, by release: splitting ops, and the support of the attention backends.

`split_attention` is `CompilationConfig.set_splitting_ops_for_v1`; `resolve_support` is `resolve_cudagraph_mode_and_sizes`, before 0.20.0
`GPUModelRunner._check_and_update_cudagraph_mode` and `initialize_cudagraph_capture`. The ecosystem tests run the released methods
against both on every combination.
"""

from __future__ import annotations

from typing import NamedTuple

from graphlint.config.modes import LEVELS, VLLM_COMPILE, Level, Mode, decode_mode, has_full, has_piecewise, mixed_mode, without_piecewise
from graphlint.config.sizes import StartupError
from graphlint.config.versions import V, Version


class Step(NamedTuple):
    """One rewrite: the mode after it, a kind for the rules, and why."""

    mode: Mode
    kind: str
    why: str


class Split(NamedTuple):
    """The result of `split_attention`: the mode's rewrites, the final list, and whether it holds every attention op."""

    steps: list[Step]
    ops: tuple[str, ...]
    contains_attention: bool


def split_attention(
    mode: Mode,
    compile_mode: int,
    ops: tuple[str, ...] | None,
    attention_ops: tuple[str, ...],
    version: Version,
    inductor_partition: bool = False,
    fuse_attention: bool = False,
) -> Split:
    """Decides the splitting ops and what they do to the mode. Raises StartupError."""
    steps: list[Step] = []
    if compile_mode != VLLM_COMPILE:
        final = ops if ops is not None else ()
        return Split(steps, final, ops is not None and _contains(final, attention_ops))
    if V("0.11.1") <= version < V("0.13.0") and inductor_partition:
        final = ops if ops is not None else attention_ops
        return Split(steps, final, _contains(final, attention_ops))
    if version < V("0.11.1"):
        return _split_v010(mode, ops, attention_ops, version, inductor_partition)
    if fuse_attention and not inductor_partition:
        final = ops if ops is not None else ()
        if ops is None and has_piecewise(mode):
            steps.append(Step("FULL", "split", "attention and quantisation are fused, which leaves no split points: FULL is tried"))
        if _contains(final, attention_ops):
            raise StartupError(
                "AssertionError",
                "attention ops should not be in splitting_ops when attention and quantisation are fused",
                "CompilationConfig.set_splitting_ops_for_attn_fusion",
            )
        return Split(steps, final, False)
    if ops is None:
        return Split(steps, attention_ops, bool(attention_ops))
    if not ops:
        if mode == "PIECEWISE":
            steps.append(Step("NONE", "split", "empty splitting_ops leave nothing to capture piecewise"))
        elif mode == "FULL_AND_PIECEWISE":
            steps.append(Step("FULL", "split", "empty splitting_ops leave no piecewise part"))
    return Split(steps, ops, _contains(ops, attention_ops))


def _split_v010(mode: Mode, ops: tuple[str, ...] | None, attention_ops: tuple[str, ...], version: Version, inductor: bool) -> Split:
    steps: list[Step] = []
    if version < V("0.11.0"):
        inductor = False
    if ops is None:
        final = () if inductor else attention_ops
        return Split(steps, final, _contains(final, attention_ops))
    if not ops and mode == "PIECEWISE" and not inductor:
        steps.append(Step("FULL", "split", "empty splitting_ops turn PIECEWISE into FULL (0.10.1 to 0.11.0)"))
    final = () if inductor else ops
    return Split(steps, final, _contains(final, attention_ops))


def _contains(ops: tuple[str, ...], attention_ops: tuple[str, ...]) -> bool:
    return all(op in ops for op in attention_ops)


def resolve_support(
    mode: Mode,
    support: Level,
    backend: str,
    query_len: int,
    compile_mode: int,
    contains_attention: bool,
    version: Version,
    inductor_partition: bool = False,
    piecewise_available: bool = True,
) -> list[Step]:
    """Rewrites forced by the weakest backend's declared support. Raises StartupError where vLLM refuses to start.

    `query_len` is tokens per request of a uniform decode batch; `piecewise_available` is false where the V2 runner finds neither a compiled
    submodule nor breakable graphs (0.30.0 and later).
    """
    steps: list[Step] = []
    if mode == "NONE":
        return steps
    refusal = f"CUDAGraphMode.{mode} is not supported with {backend} (support: {support}); please try cudagraph_mode=PIECEWISE"
    if mixed_mode(mode) == "FULL" and support != "ALWAYS":
        if support == "NEVER":
            raise StartupError("ValueError", refusal, resolver_symbol(version))
        mode = "FULL_AND_PIECEWISE" if contains_attention else "FULL_DECODE_ONLY"
        steps.append(Step(mode, "support", f"{backend} declares {support}: no full graphs for batches with prefill"))
    if version >= V("0.11.0") and decode_mode(mode) == "FULL" and support == "NEVER":
        compiled = compile_mode == VLLM_COMPILE and (contains_attention or inductor_partition)
        mode = "PIECEWISE" if compiled else "NONE"
        why = "attention is compiled piecewise" if compiled else "attention is not compiled piecewise"
        steps.append(Step(mode, "support", f"{backend} declares NEVER and {why}"))
    if decode_mode(mode) == "FULL" and query_len > 1 and LEVELS.index(support) < LEVELS.index("UNIFORM_BATCH"):
        mode = "PIECEWISE" if contains_attention else "NONE"
        steps.append(
            Step(mode, "support-spec", f"{backend} declares {support}, and speculative decoding verifies {query_len} tokens per request")
        )
    if version >= V("0.30.0") and not piecewise_available and has_piecewise(mode):
        mode = without_piecewise(mode)
        steps.append(Step(mode, "uncompiled", "the model has neither a compiled submodule nor breakable graphs"))
    if has_full(mode) and support == "NEVER":
        raise StartupError("ValueError", refusal, resolver_symbol(version))
    return steps


def resolver_symbol(version: Version) -> str:
    """The function that resolves the mode against the backends in this release."""
    if version >= V("0.20.0"):
        return "CompilationConfig.resolve_cudagraph_mode_and_sizes"
    return "GPUModelRunner._check_and_update_cudagraph_mode" if version >= V("0.11.1") else "GPUModelRunner.initialize_cudagraph_capture"


def resolver_file(version: Version) -> str:
    """The file of that function."""
    return "vllm/config/compilation.py" if version >= V("0.20.0") else "vllm/v1/worker/gpu_model_runner.py"

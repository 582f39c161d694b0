"""CUDA-graph modes and support levels, with vLLM's words for their parts."""

from __future__ import annotations

from typing import Literal

Mode = Literal["NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"]
Level = Literal["NEVER", "UNIFORM_SINGLE_TOKEN_DECODE", "UNIFORM_BATCH", "ALWAYS"]

MODES: tuple[Mode, ...] = ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")
LEVELS: tuple[Level, ...] = ("NEVER", "UNIFORM_SINGLE_TOKEN_DECODE", "UNIFORM_BATCH", "ALWAYS")
LETTER = {"NEVER": "N", "UNIFORM_SINGLE_TOKEN_DECODE": "S", "UNIFORM_BATCH": "U", "ALWAYS": "A", "?": "?"}

#: compilation modes of `CompilationConfig.mode`
NO_COMPILE, STOCK, DYNAMO_ONCE, VLLM_COMPILE = 0, 1, 2, 3


def decode_mode(mode: Mode) -> Mode:
    """What a uniform decode batch is replayed with."""
    return "FULL" if mode in ("FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE") else mode


def mixed_mode(mode: Mode) -> Mode:
    """What a batch with prefill in it is replayed with."""
    if mode == "FULL_DECODE_ONLY":
        return "NONE"
    return "PIECEWISE" if mode == "FULL_AND_PIECEWISE" else mode


def has_full(mode: Mode) -> bool:
    """Whether full graphs are captured for any batch."""
    return decode_mode(mode) == "FULL"


def has_piecewise(mode: Mode) -> bool:
    """Whether piecewise graphs are captured for any batch."""
    return mode in ("PIECEWISE", "FULL_AND_PIECEWISE")


def separate(mode: Mode) -> bool:
    """Whether decode and mixed batches have different modes (`separate_routine`)."""
    return mode in ("FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")


def without_piecewise(mode: Mode) -> Mode:
    """The mode with its piecewise half gone (0.30.0 and later)."""
    return "NONE" if mode == "PIECEWISE" else "FULL_DECODE_ONLY" if mode == "FULL_AND_PIECEWISE" else mode


def worse(before: Mode, after: Mode) -> bool:
    """Whether a rewrite loses graphs that the earlier mode had, for decode or for mixed batches."""
    rank = {"NONE": 0, "PIECEWISE": 1, "FULL": 2}
    return rank[decode_mode(after)] < rank[decode_mode(before)] or rank[mixed_mode(after)] < min(rank[mixed_mode(before)], 1)

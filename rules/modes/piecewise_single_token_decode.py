"""A graph manager for decodes of one token a request may be given a PIECEWISE mode.

## What it does
Computes the set of modes that can reach the construction of a CUDA-graph manager whose decode query length is 1. If PIECEWISE (or
FULL_AND_PIECEWISE) is among them, it is reported.

## Why it fails under graphs
A PIECEWISE graph pads the number of tokens to a capture size and leaves the number of requests alone. With one token a request the two
counts are equal in every eager run, so backends slice per-request metadata by the token count. Padded, they read rows of the offsets that
an older step wrote: FlashInfer attends over pages of finished requests.

## Known problems
A manager class that itself refuses PIECEWISE is not seen as safe.

## Example
    def init_cudagraph_manager(self, cudagraph_mode):
        self.decode_manager = DraftCudaGraphManager(self.config, cudagraph_mode, decode_query_len=1)

## Use instead
    def init_cudagraph_manager(self, cudagraph_mode):
        if cudagraph_mode.decode_mode() == CUDAGraphMode.FULL:
            cudagraph_mode = CUDAGraphMode.FULL_DECODE_ONLY
        else:
            cudagraph_mode = CUDAGraphMode.NONE
        self.decode_manager = DraftCudaGraphManager(self.config, cudagraph_mode, decode_query_len=1)

## Fix safety
Narrowing the mode trades PIECEWISE speed for correctness in drafts; unsafe, because it changes which graphs are captured.

## How it is confirmed
Decode planned by padded tokens over per-request offsets written for live requests: rows beyond the live requests read stale pages.

## References
vllm-project/vllm#39773.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphlint.api import Example, Finding, Project, Rule, Witness, make_finding, point, show


def check(project: Project) -> Iterator[Finding]:
    """Managers with a decode query length of one and a mode that may be PIECEWISE."""
    for manager in project.graph_managers:
        if manager.query_len != 1 or not manager.modes & {"PIECEWISE", "FULL_AND_PIECEWISE"}:
            continue
        yield make_finding(
            rule=RULE.id,
            name=RULE.name,
            severity="error",
            confidence="high" if manager.query_len_named else "medium",
            site=manager.site,
            buffer=None,
            trace=[
                point(manager.origin, f"`{show(manager.mode)}` may be {', '.join(sorted(manager.modes))}"),
                point(manager.site, f"`{manager.class_name}` gets it with a query length of 1"),
            ],
            witness=Witness(
                [
                    {"live": 12, "padded": 12, "unit": "requests", "mode": "PIECEWISE"},
                    {"live": 3, "padded": 4, "unit": "tokens", "mode": "PIECEWISE"},
                ],
                [3, 4],
                "A step with 12 requests, then 3 requests whose 3 tokens are padded to 4 under PIECEWISE while requests stay 3: "
                "per-request metadata sliced by tokens has a fourth row that the first step wrote.",
            ),
            message=(
                f"`{manager.class_name}` for single-token decodes may run PIECEWISE, which pads tokens and not requests: "
                "attention backends then read per-request rows that nobody wrote in this step"
            ),
        )


_HEAD = """
from vllm.config.compilation import CUDAGraphMode

class CudaGraphManager:
    def __init__(self, config, cudagraph_mode: CUDAGraphMode, decode_query_len: int):
        self.cudagraph_mode = cudagraph_mode

class DraftCudaGraphManager(CudaGraphManager):
    pass

class Drafter:
    def init_cudagraph_manager(self, cudagraph_mode: CUDAGraphMode) -> None:
"""
_NARROW = """
        if cudagraph_mode.decode_mode() == CUDAGraphMode.FULL:
            cudagraph_mode = CUDAGraphMode.FULL_DECODE_ONLY
        else:
            cudagraph_mode = CUDAGraphMode.NONE
"""
_MAKE = "        self.decode = DraftCudaGraphManager(self.config, cudagraph_mode, {})\n"

RULE = Rule(
    id="GL501",
    name="piecewise-single-token-decode",
    summary="a graph manager for a decode path with one token a request may receive PIECEWISE",
    severity="error",
    since="0.1.0",
    tokens=(b"CudaGraphManager", b"CUDAGraphMode", b"cudagraph_mode"),
    check=check,
    references=("vllm-project/vllm#39773",),
    bad=(
        Example("mode as it came", _HEAD + _MAKE.format("decode_query_len=1")),
        Example("query length by position", _HEAD + _MAKE.format("1")),
        Example(
            "narrowed to the mode of mixed batches",
            _HEAD + "        cudagraph_mode = cudagraph_mode.mixed_mode()\n" + _MAKE.format("decode_query_len=1"),
        ),
        Example(
            "one arm of the test stays wide",
            _HEAD + "        if self.fused:\n            cudagraph_mode = CUDAGraphMode.NONE\n" + _MAKE.format("decode_query_len=1"),
        ),
    ),
    good=(
        Example("narrowed in both arms", _HEAD + _NARROW + _MAKE.format("decode_query_len=1")),
        Example("near miss: more than one token a request", _HEAD + _MAKE.format("self.num_speculative_steps + 1")),
        Example(
            "narrowed by an expression",
            _HEAD
            + "        mode = CUDAGraphMode.FULL_DECODE_ONLY if self.graphs else CUDAGraphMode.NONE\n"
            + _MAKE.format("decode_query_len=1").replace("cudagraph_mode,", "mode,"),
        ),
    ),
)

"""SGLang admits decode batches that are wider than the largest captured graph.

## What it does
Compares the largest captured decode batch (`--cuda-graph-max-bs-decode`, or its default for the GPU's memory and tensor parallelism) with
`--max-running-requests`, or with its far larger default.

## Why it fails under graphs
Batches above the largest graph run eager, at about four times the time per token in the thread below. The default on a 48 GiB card is 32 requests.

## Known problems
Without `--gpu` the default is not known; then only explicit values are compared.

## Example
    python -m sglang.launch_server --model-path M                                  # L40: graphs up to 32 requests

## Use instead
    python -m sglang.launch_server --model-path M --cuda-graph-max-bs-decode 128 --max-running-requests 128

## Fix safety
No fix is applied: graphs take memory from the KV cache.

## How it is confirmed
By `server_args.py` of 0.5.9 to 0.5.23.

## References
sgl-project/sglang#33900.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, V

if TYPE_CHECKING:
    from graphlint.config.sglang import SglangDeployment


def check(resolved: SglangDeployment) -> Iterator[Finding]:
    """The captured batch against the admitted one."""
    from graphlint.config.sglang import sglang_finding

    if resolved.errors or not resolved.cliff:
        return
    running = resolved.max_running
    admitted = f"--max-running-requests {running}" if running is not None else "a default request limit far above that"
    suffix = "-decode" if resolved.version is None or resolved.version >= V("0.5.14") else ""
    yield sglang_finding(
        resolved,
        RULE.id,
        RULE.name,
        "warning",
        f"decode graphs end at {resolved.max_bs} requests ({resolved.max_bs_by}) and the server admits {admitted}: wider batches run eager",
        span=resolved.span(
            "--cuda-graph-max-bs-decode", "--cuda-graph-max-bs", "--cuda-graph-bs-decode", "--cuda-graph-bs", "--max-running-requests"
        ),
        advice=f"set --cuda-graph-max-bs{suffix} and --max-running-requests to the same number",
    )


RULE = DeploymentRule(
    id="GL623",
    name="sglang-decode-batches-not-covered",
    summary="SGLang admits decode batches that are wider than the largest captured graph",
    severity="warning",
    since="0.1.0",
    check_sglang=check,
    references=("sgl-project/sglang#33900",),
    bad=(
        DeploymentExample("a small default", "python -m sglang.launch_server --model-path M", gpu="L40"),
        DeploymentExample(
            "a limit above the graphs",
            "python -m sglang.launch_server --model-path M --cuda-graph-max-bs-decode 64 --max-running-requests 256",
        ),
        DeploymentExample(
            "a list that ends early",
            "python -m sglang.launch_server --model-path M --cuda-graph-bs-decode 1 2 4 8 --max-running-requests 16",
        ),
    ),
    good=(
        DeploymentExample(
            "equal limits",
            "python -m sglang.launch_server --model-path M --cuda-graph-max-bs-decode 128 --max-running-requests 128",
            gpu="L40",
        ),
        DeploymentExample("a large default", "python -m sglang.launch_server --model-path M", gpu="H200"),
        DeploymentExample(
            "graphs off", "python -m sglang.launch_server --model-path M --disable-cuda-graph --max-running-requests 256", gpu="L40"
        ),
    ),
)

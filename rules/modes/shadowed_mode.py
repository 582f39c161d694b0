"""The resolved CUDA-graph mode that is passed in is overwritten from the raw configuration before anybody reads it.

## What it does
Reports a parameter that holds a CUDA-graph mode and is assigned anew, from a field of the configuration, before its first use.

## Why it fails under graphs
The caller resolved the mode after asking every attention backend what it supports. The configuration still holds what the user wished
for. The callee captures graphs in a mode that a backend has refused.

## Known problems
None known: the parameter is dead, so either the parameter or the assignment is wrong.

## Example
    def init_cudagraph_manager(self, cudagraph_mode):
        cudagraph_mode = self.vllm_config.compilation_config.cudagraph_mode
        self.manager = CudaGraphManager(cudagraph_mode)

## Use instead
    def init_cudagraph_manager(self, cudagraph_mode):
        self.manager = CudaGraphManager(cudagraph_mode)

## Fix safety
Deleting the assignment changes which mode is used; that is its purpose, so the fix is unsafe.

## How it is confirmed
By reading: the parameter has no use before the assignment.

## References
vllm-project/vllm#43340.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphlint.api import Example, Finding, Project, Rule, make_finding, point, show


def check(project: Project) -> Iterator[Finding]:
    """Mode parameters shadowed by a configuration field before their first use."""
    for shadow in project.shadowed_modes:
        yield make_finding(
            rule=RULE.id,
            name=RULE.name,
            severity="error",
            confidence="high",
            site=shadow.site,
            buffer=None,
            trace=[
                point(shadow.parameter_site, f"the caller passes the resolved `{shadow.name}`"),
                point(shadow.site, f"is replaced by `{show(shadow.value)}` before anybody reads it"),
            ],
            message=f"parameter `{shadow.name}` (the resolved mode) is overwritten by `{show(shadow.value)}`, the mode that was asked for",
        )


_HEAD = """
from vllm.config.compilation import CUDAGraphMode

class Drafter:
    def init_cudagraph_manager(self, cudagraph_mode: CUDAGraphMode) -> None:
"""

RULE = Rule(
    id="GL502",
    name="shadowed-mode",
    summary="the resolved mode passed in is overwritten from the raw configuration",
    severity="error",
    since="0.1.0",
    tokens=(b"cudagraph_mode", b"CUDAGraphMode", b"cuda_graph_mode", b"cg_mode"),
    check=check,
    references=("vllm-project/vllm#43340",),
    bad=(
        Example(
            "overwritten at once",
            _HEAD
            + "        cudagraph_mode = self.vllm_config.compilation_config.cudagraph_mode\n        self.manager = Manager(cudagraph_mode)\n",
        ),
        Example(
            "overwritten through a local configuration",
            _HEAD
            + "        config = self.vllm_config.compilation_config\n        cudagraph_mode = config.cudagraph_mode\n        self.manager = Manager(cudagraph_mode)\n",
        ),
        Example(
            "overwritten in a function",
            "def capture(runner, runtime_mode: 'CUDAGraphMode', vllm_config):\n"
            "    runtime_mode = vllm_config.compilation_config.cudagraph_mode\n    return runner.capture(runtime_mode)\n",
        ),
    ),
    good=(
        Example("used as it is", _HEAD + "        self.manager = Manager(cudagraph_mode)\n"),
        Example(
            "near miss: narrowed from itself",
            _HEAD
            + "        if cudagraph_mode.decode_mode() == CUDAGraphMode.FULL:\n            cudagraph_mode = CUDAGraphMode.FULL_DECODE_ONLY\n"
            "        self.manager = Manager(cudagraph_mode)\n",
        ),
        Example(
            "default when none was given",
            "def capture(runner, vllm_config, cudagraph_mode=None):\n    if cudagraph_mode is None:\n"
            "        cudagraph_mode = vllm_config.compilation_config.cudagraph_mode\n    return runner.capture(cudagraph_mode)\n",
        ),
        Example(
            "used before it is replaced",
            _HEAD + "        self.log(cudagraph_mode)\n        cudagraph_mode = self.vllm_config.compilation_config.cudagraph_mode\n"
            "        self.manager = Manager(cudagraph_mode)\n",
        ),
    ),
)

"""A deployment: one server command with its environment, its version and where each word stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from graphlint.config.words import Note, Span, Word

Engine = Literal["vllm", "sglang"]


@dataclass
class Deployment:
    """What one server is started with."""

    engine: Engine
    span: Span
    #: words behind `vllm serve`, the model included when it is positional
    args: list[Word]
    env: dict[str, Word] = field(default_factory=dict)
    #: stated version (image tag, requirement, `min_vllm_version`) and the words it was read from
    version: str | None = None
    version_source: str = ""
    #: role, variant, service or branch, for inputs with several deployments
    name: str = ""
    #: "serve" (`vllm serve`), "module" (`python -m vllm.entrypoints...`), "api" (LLM(...) in Python), "values" (a bare flag list)
    entry: Literal["serve", "module", "api", "values"] = "serve"
    #: files that the same input writes (heredocs), for `--config`
    files: dict[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    #: lowest release that the input promises to work with (`min_vllm_version`)
    minimum: str | None = None
    #: whether the words are layers laid over each other on purpose (a recipe), so that repeated options are no surprise
    layered: bool = False
    #: the device, where the input names it (a recipe's hardware profile)
    gpu: str | None = None
    #: engine arguments given as a map instead of words (a vLLM configuration file): key, value, place
    inline: list[tuple[str, Any, Span]] | None = None

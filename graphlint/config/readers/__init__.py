"""One module a format: each turns a file into deployments.

`read_text` picks the reader by name and content, `candidate` says what is worth reading.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from graphlint.config.deployment import Deployment
from graphlint.config.words import Note

_SHELL = {".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".ksh"}
_YAML = {".yaml", ".yml"}
_MARKDOWN = {".md", ".mdx", ".markdown", ".rst"}
_TOKENS = re.compile(
    rb"vllm\s+serve|vllm\.entrypoints|sglang\.launch_server|sglang\s+serve|vllm/vllm-openai|\bLLM\(|EngineArgs\(|vllm_args|server_args|vllmConfig"
    rb"|hardware_overrides|[\"']vllm[\"']\s*,\s*[\"']serve|cudagraph|compilation[-_]config|speculative[-_]config|enforce[-_]eager|attention[-_]backend"
)


class Read(NamedTuple):
    """What one file holds."""

    deployments: list[Deployment]
    notes: list[Note]


def kind_of(path: str, head: bytes) -> str | None:
    """The reader for a file, or None where no reader takes it."""
    name = os.path.basename(path).lower()
    suffix = os.path.splitext(name)[1]
    if name.startswith(("dockerfile", "containerfile")) or suffix == ".dockerfile" or name.endswith(".dockerfile"):
        return "dockerfile"
    if suffix in _YAML or name.endswith((".yaml.tpl", ".yaml.j2", ".yml.j2", ".yaml.tmpl")):
        return "yaml"
    if suffix in _MARKDOWN:
        return "markdown"
    if suffix == ".py":
        return "python"
    if suffix == ".json":
        return "json"
    if (
        suffix in _SHELL
        or (not suffix and head.startswith(b"#!") and b"sh" in head.split(b"\n", 1)[0])
        or suffix in (".env", ".service", ".txt")
    ):
        return "shell"
    return None


def candidate(path: str, data: bytes) -> bool:
    """Whether the file can hold a deployment at all."""
    kind = kind_of(path, data[:64])
    if kind in ("yaml", "dockerfile", "json"):
        return b"vllm" in data or b"sglang" in data or _TOKENS.search(data) is not None
    return kind is not None and _TOKENS.search(data) is not None


def read_text(path: str, text: str) -> Read:
    """Deployments of one file. Malformed input becomes notes, never an exception."""
    kind = kind_of(path, text[:64].encode("utf-8", "replace"))
    if kind == "yaml":
        from graphlint.config.readers.yaml_files import read_yaml

        return read_yaml(text, path)
    if kind == "dockerfile":
        from graphlint.config.readers.dockerfile import read_dockerfile

        return read_dockerfile(text, path)
    if kind == "markdown":
        from graphlint.config.readers.markdown import read_markdown

        return read_markdown(text, path)
    if kind == "python":
        from graphlint.config.readers.python import read_python

        return read_python(text, path)
    if kind == "json":
        from graphlint.config.readers.yaml_files import read_json

        return read_json(text, path)
    from graphlint.config.readers.launch import script_deployments

    return Read(*script_deployments(text, path))

"""Markdown: code fences that are shell, YAML, Dockerfiles or Python, each read by its own reader at its own lines."""

from __future__ import annotations

import re

from graphlint.config.deployment import Deployment
from graphlint.config.readers import Read
from graphlint.config.words import Note, mark_templates

_FENCE = re.compile(r"^(?P<indent>[ \t]*(?:>[ \t]*)*)(?P<ticks>`{3,}|~{3,})[ \t]*\{?\.?(?P<language>[\w+-]*)")
_SHELL = {"", "bash", "sh", "shell", "console", "zsh", "text", "shell-session", "terminal", "cmd"}


def read_markdown(text: str, path: str) -> Read:
    """Deployments of all fences. A version named in the prose says nothing about a fence and is not used."""
    found: list[Deployment] = []
    notes: list[Note] = []
    lines = text.replace("\r\n", "\n").split("\n")
    index = 0
    while index < len(lines):
        match = _FENCE.match(lines[index])
        if match is None:
            index += 1
            continue
        start = index + 1
        index += 1
        indent, ticks = match.group("indent"), match.group("ticks")
        body: list[str] = []
        while index < len(lines) and not re.match(rf"^[ \t>]*{re.escape(ticks[0])}{{{len(ticks)},}}\s*$", lines[index]):
            line = lines[index]
            body.append(line[len(indent) :] if line.startswith(indent) else line.lstrip())
            index += 1
        index += 1
        read = _fence(match.group("language").lower(), "\n".join(body), path, start + 1)
        found += read.deployments
        notes += read.notes
    return Read(found, notes)


def _fence(language: str, body: str, path: str, line: int) -> Read:
    if "vllm" not in body and "sglang" not in body:
        return Read([], [])
    if language in _SHELL:
        from graphlint.config.readers.launch import script_deployments

        plain = re.sub(
            r"(?m)^(\s*)(?:\$|#(?= *vllm serve)|>>>) (?=\S)", lambda m: m.group(1) + " " * (len(m.group(0)) - len(m.group(1))), body
        )
        found, notes = script_deployments(mark_templates(plain), path, line)
        # prose around commands is not a script: what does not parse there is no finding
        return Read(found, notes if found else [])
    if language in ("yaml", "yml"):
        from graphlint.config.readers.yaml_files import read_yaml

        read = read_yaml(body, path, line)
        return Read(read.deployments, read.notes if read.deployments else [])
    if language in ("dockerfile", "docker"):
        from graphlint.config.readers.dockerfile import read_dockerfile

        shifted = "\n" * (line - 1) + body
        return read_dockerfile(shifted, path)
    if language in ("python", "py"):
        from graphlint.config.readers.python import read_python

        read = read_python("\n" * (line - 1) + body, path)
        return Read(read.deployments, [])
    return Read([], [])

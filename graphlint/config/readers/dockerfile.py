"""Dockerfiles: ENV, ARG defaults, ENTRYPOINT + CMD in exec and shell form, RUN pins; each stage on its own."""

from __future__ import annotations

import json
import re

from graphlint.config.deployment import Deployment
from graphlint.config.readers import Read
from graphlint.config.readers.launch import container_deployment, script_deployments
from graphlint.config.readers.shell import read_script
from graphlint.config.versions import version_in_requirement
from graphlint.config.words import Note, Span, Word, unknown


def read_dockerfile(text: str, path: str) -> Read:
    """The server that each stage's ENTRYPOINT and CMD start."""
    notes: list[Note] = []
    found: list[Deployment] = []
    stage = _Stage(path, notes)
    arguments: dict[str, Word] = {}
    for line, keyword, body in _instructions(text):
        span = Span(path, line, 1, line + body.count("\n"))
        if keyword == "FROM":
            found += stage.finish()
            stage = _Stage(path, notes)
            stage.image = Word(_expand(body.split()[0] if body.split() else "", arguments), span)
        elif keyword == "ARG":
            name, equals, value = body.strip().partition("=")
            word = Word(value.strip("\"'") if equals else unknown(f"${name}"), span)
            arguments[name] = word
            stage.arguments[name] = word
        elif keyword == "ENV":
            stage.set_env(body, line)
        elif keyword in ("ENTRYPOINT", "CMD"):
            stage.command(keyword, body, line)
        elif keyword == "RUN":
            requirement = version_in_requirement(_expand(body, {**arguments, **stage.arguments}))
            if requirement is not None:
                stage.pinned = (requirement[0], str(requirement[1]))
            nested, _ = script_deployments(body, path, line)
            found += nested
    found += stage.finish()
    return Read(found, notes)


def _instructions(text: str) -> list[tuple[int, str, str]]:
    """(line, keyword, text behind it) with continuations joined by newlines so that lines keep their numbers."""
    out: list[tuple[int, str, str]] = []
    lines = text.replace("\r\n", "\n").split("\n")
    index = 0
    while index < len(lines):
        start = index
        match = re.match(r"^\s*([A-Za-z]+)\s+(.*)$", lines[index])
        if match is None or lines[index].lstrip().startswith("#"):
            index += 1
            continue
        keyword, body = match.group(1).upper(), match.group(2)
        heredoc = re.search(r"<<-?[\"']?(\w+)[\"']?\s*$", body)
        if heredoc and keyword in ("RUN", "COPY"):
            index += 1
            while index < len(lines) and lines[index].strip() != heredoc.group(1):
                body += "\n" + lines[index]
                index += 1
        else:
            while body.rstrip().endswith("\\") and index + 1 < len(lines):
                index += 1
                following = "" if lines[index].lstrip().startswith("#") else lines[index]
                body = body.rstrip() + "\n" + following if following else body.rstrip()[:-1] + " \\"
        out.append((start + 1, keyword, body))
        index += 1
    return out


def _expand(text: str, known: dict[str, Word]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(3)
        default = match.group(2)
        if name in known:
            return known[name].text
        return default if default is not None else unknown(match.group(0))

    return re.sub(r"\$\{(\w+)(?::-([^}]*))?\}|\$(\w+)", value, text)


class _Stage:
    def __init__(self, path: str, notes: list[Note]) -> None:
        self.path = path
        self.notes = notes
        self.image = Word("", Span(path, 1))
        self.env: dict[str, Word] = {}
        self.arguments: dict[str, Word] = {}
        self.pinned: tuple[str, str] | None = None
        self.entrypoint: list[Word] = []
        self.cmd: list[Word] = []
        self.scripts: list[Deployment] = []

    def set_env(self, body: str, line: int) -> None:
        script = read_script(
            f"export {body}" if "=" in body.split()[0] else f"export {body.split()[0]}='{' '.join(body.split()[1:])}'", self.path, line
        )
        expanded = re.findall(r"([A-Za-z_]\w*)=(\"(?:[^\"\\]|\\.)*\"|'[^']*'|\S*)", body)
        for name, value in expanded or ([(body.split()[0], " ".join(body.split()[1:]))] if len(body.split()) > 1 else []):
            offset = body[: body.find(name)].count("\n")
            self.env[name] = Word(_expand(value.strip("\"'"), {**self.arguments, **self.env}), Span(self.path, line + offset))
        self.notes.extend(script.notes)

    def command(self, keyword: str, body: str, line: int) -> None:
        stripped = body.strip()
        if stripped.startswith("["):
            joined = re.sub(r"\\\s*\n", "\n", body)
            try:
                items = json.loads(joined)
            except ValueError as error:
                self.notes.append(
                    Note(
                        self.path,
                        line,
                        f"{keyword}: the exec form is no JSON list ({error}), so docker runs it through a shell",
                        "malformed",
                    )
                )
                items = None
            if isinstance(items, list):
                words = []
                position = 0
                for item in items:
                    position = max(joined.find(json.dumps(str(item), ensure_ascii=False), position), position)
                    at = line + joined[:position].count("\n")
                    words.append(Word(str(item), Span(self.path, at, 1, at)))
                if keyword == "ENTRYPOINT":
                    self.entrypoint, self.cmd = words, []
                else:
                    self.cmd = words
                return
        nested, notes = script_deployments(body, self.path, line, 1, dict(self.env))
        self.notes.extend(notes)
        self.scripts = nested
        if keyword == "CMD" and not nested:
            script = read_script(body, self.path, line, 1, dict(self.env))
            self.cmd = script.commands[0].words if script.commands else []

    def finish(self) -> list[Deployment]:
        found = self.scripts
        for deployment in found:
            deployment.env = {**self.env, **deployment.env}
        if not found and (self.entrypoint or self.cmd):
            found = container_deployment(self.image, [*self.entrypoint, *self.cmd], dict(self.env), "", self.path)
        from graphlint.config.versions import version_in_image

        stated = version_in_image(self.image.text)
        for deployment in found:
            if deployment.version is None and stated is not None and stated[0] == deployment.engine:
                deployment.version, deployment.version_source = str(stated[1]), self.image.text
            if deployment.version is None and self.pinned is not None and self.pinned[0] == deployment.engine:
                deployment.version, deployment.version_source = self.pinned[1], f"{self.pinned[0]}=={self.pinned[1]}"
        return found

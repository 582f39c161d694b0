"""Finds server commands in expanded command lines: wrappers, `sh -c`, docker and podman, vLLM and SGLang entry points."""

from __future__ import annotations

import re
from typing import Literal

from graphlint.config.deployment import Deployment, Engine
from graphlint.config.readers.shell import Command, Script, read_script
from graphlint.config.versions import version_in_image, version_in_requirement
from graphlint.config.words import OPEN, Note, Word

_VLLM_MODULES = re.compile(r"^vllm\.(entrypoints\.(openai|cli)\.(api_server|main)|entrypoints\.api_server|scripts|entrypoints\.cli)")
_SGLANG_MODULES = re.compile(r"^sglang(\.launch_server|\.srt\.server|_router\.launch_server)?$")
_CONTAINER = {"docker", "podman", "nerdctl", "enroot", "apptainer", "singularity"}
_SHELLS = {"sh", "bash", "zsh", "dash", "/bin/sh", "/bin/bash", "/usr/bin/bash"}
_PYTHON = re.compile(r"^(.*/)?python[\d.]*$")
#: docker options without a value of their own
_DOCKER_FLAGS = {
    "-d",
    "-i",
    "-t",
    "-it",
    "-ti",
    "-dit",
    "-itd",
    "--rm",
    "--privileged",
    "--init",
    "--detach",
    "--interactive",
    "--tty",
    "--no-healthcheck",
    "--read-only",
    "-P",
    "--publish-all",
    "--oom-kill-disable",
}
_Entry = Literal["serve", "module", "api", "values"]


def deployments_in(script: Script, path: str) -> list[Deployment]:
    """All server commands of a script. A version pinned by `pip install vllm==X` in the script applies to those behind it."""
    found: list[Deployment] = []
    pinned: tuple[str, str, str] | None = None
    for command in script.commands:
        requirement = version_in_requirement(" ".join(w.text for w in command.words))
        if requirement is not None:
            pinned = (requirement[0], str(requirement[1]), f"{requirement[0]}=={requirement[1]}")
        for deployment in from_command(command, path):
            if deployment.version is None and pinned is not None and pinned[0] == deployment.engine:
                deployment.version, deployment.version_source = pinned[1], pinned[2]
            deployment.files = script.files
            found.append(deployment)
    return found


def from_command(command: Command, path: str) -> list[Deployment]:
    """Server commands inside one command line (normally none or one)."""
    words, env = list(command.words), dict(command.env)
    for index, word in enumerate(words):
        base = word.text.rsplit("/", 1)[-1]
        if base in _CONTAINER and any(w.text in ("run", "create", "exec") for w in words[index + 1 : index + 4]):
            return _container(words[index + 1 :], env, command, path)
        if base in _SHELLS or word.text in _SHELLS:
            inner = _inline(words[index + 1 :], env, path)
            if inner is not None:
                return inner
        started = entry_at(words, index)
        if started is not None:
            engine, entry, rest = started
            _assignments(words[:index], env)
            return [Deployment(engine, word.span, words[rest:], env, name=command.branch, entry=entry)]
    return []


def entry_at(words: list[Word], index: int) -> tuple[Engine, _Entry, int] | None:
    """(engine, entry, index of the first argument) when a server command starts here."""
    text = words[index].text
    base = text.rsplit("/", 1)[-1]
    following = words[index + 1].text if index + 1 < len(words) else ""
    if base == "vllm" and following == "serve":
        return "vllm", "serve", index + 2
    if base == "sglang" and following == "serve":
        return "sglang", "module", index + 2
    if text == "-m" and _VLLM_MODULES.match(following):
        if index + 2 < len(words) and words[index + 2].text == "serve":
            return "vllm", "serve", index + 3
        if "cli" in following or following == "vllm.scripts":
            return None
        return "vllm", "module", index + 2
    if text == "-m" and _SGLANG_MODULES.match(following) and following != "sglang":
        return "sglang", "module", index + 2
    if _PYTHON.match(text) and following.endswith("vllm/entrypoints/openai/api_server.py"):
        return "vllm", "module", index + 2
    return None


def _assignments(words: list[Word], env: dict[str, Word]) -> None:
    """`env A=1 B=2 vllm serve`: assignments among the words before the program."""
    for word in words:
        name, equals, value = word.text.partition("=")
        if equals and re.fullmatch(r"[A-Za-z_]\w*", name):
            env[name] = Word(value, word.span)


def _inline(words: list[Word], env: dict[str, Word], path: str) -> list[Deployment] | None:
    """`bash -c "..."`: the string is a script of its own."""
    for index, word in enumerate(words):
        if re.fullmatch(r"-[a-z]*c", word.text) and index + 1 < len(words):
            body = words[index + 1]
            script = read_script(body.text, path, body.span.line, body.span.column, env)
            found = deployments_in(script, path)
            for deployment in found:
                deployment.notes.extend(script.notes)
            return found
        if not word.text.startswith("-"):
            return None
    return None


def _container(words: list[Word], env: dict[str, Word], command: Command, path: str) -> list[Deployment]:
    inside: dict[str, Word] = {}
    entrypoint: list[Word] = []
    image: Word | None = None
    index = 0
    while index < len(words):
        word = words[index]
        text = word.text
        if text in ("-e", "--env") and index + 1 < len(words):
            _set_env(words[index + 1], inside, env)
            index += 2
        elif text.startswith("--env="):
            _set_env(Word(text[6:], word.span), inside, env)
            index += 1
        elif text.startswith("-e") and "=" in text and not text.startswith("--"):
            _set_env(Word(text[2:], word.span), inside, env)
            index += 1
        elif text == "--entrypoint" and index + 1 < len(words):
            entrypoint = [words[index + 1]]
            index += 2
        elif text.startswith("--entrypoint="):
            entrypoint = [Word(text[13:], word.span)]
            index += 1
        elif text in ("run", "create", "exec") or text in _DOCKER_FLAGS:
            index += 1
        elif text.startswith("-"):
            index += 1 if "=" in text else 2
        else:
            image = word
            index += 1
            break
    if image is None:
        return []
    return container_deployment(image, [*entrypoint, *words[index:]], inside, command.branch, path)


def _set_env(word: Word, inside: dict[str, Word], outer: dict[str, Word]) -> None:
    name, equals, value = word.text.partition("=")
    if equals:
        inside[name] = Word(value, word.span)
    elif name in outer:
        inside[name] = outer[name]


def container_deployment(image: Word, argv: list[Word], env: dict[str, Word], name: str, path: str) -> list[Deployment]:
    """Server commands of a container: `argv` is entrypoint and command; a bare flag list runs the image's own server."""
    found: list[Deployment] = []
    shell = False
    for index, word in enumerate(argv):
        base = word.text.rsplit("/", 1)[-1]
        if base in _SHELLS or word.text in _SHELLS:
            shell = True
            inline = _inline(argv[index + 1 :], env, path)
            if inline is not None:
                found = inline
                break
        started = entry_at(argv, index)
        if started is not None:
            engine, entry, rest = started
            found = [Deployment(engine, word.span, argv[rest:], env, entry=entry)]
            break
    if not found and argv and not shell and "vllm" in image.text and not _other_program(argv):
        found = [Deployment("vllm", argv[0].span, argv, env, entry="serve" if not argv[0].text.startswith("-") else "module")]
    stated = version_in_image(image.text)
    for deployment in found:
        deployment.name = deployment.name or name
        if stated is not None and stated[0] == deployment.engine:
            deployment.version, deployment.version_source = str(stated[1]), image.text
        elif image.text and deployment.version is None:
            deployment.version_source = f"image {image.text} states no version"
    return found


def _other_program(argv: list[Word]) -> bool:
    """A command that is not arguments of the image's server: neither an option nor a model such as `org/name` or `$MODEL`."""
    first = argv[0].text
    model = OPEN in first or (
        "/" in first and not first.startswith((".", "/bin", "/usr", "/opt", "/app", "/root")) and not first.endswith((".sh", ".py"))
    )
    return not first.startswith("-") and not model


def script_deployments(
    text: str, path: str, line: int = 1, column: int = 1, env: dict[str, Word] | None = None
) -> tuple[list[Deployment], list[Note]]:
    """Deployments and notes of shell text."""
    script = read_script(text, path, line, column, env)
    found = deployments_in(script, path)
    return found, script.notes

"""Containers and services in YAML: Kubernetes, compose, KServe, llm-d, Dynamo, Helm values."""

from __future__ import annotations

import re

from graphlint.config.deployment import Deployment
from graphlint.config.readers import Read
from graphlint.config.readers.launch import container_deployment, entry_at
from graphlint.config.readers.shell import read_script
from graphlint.config.readers.yaml_tree import Mapping, Scalar, Sequence, Tree, span_of, word_of
from graphlint.config.words import OPEN, Note, Span, Word, unknown

_K8S_VARIABLE = re.compile(r"\$\((\w+)\)")


def container(tree: Mapping, path: str, role: str) -> Read:
    """The server of one container or service, if it starts one."""
    arguments, command = tree.get("args"), tree.get("command")
    entrypoint = tree.get("entrypoint")
    if arguments is None and command is None and entrypoint is None:
        return Read([], [])
    notes: list[Note] = []
    env = environment(tree, path)
    image = image_of(tree, path) or Word("", Span(path, tree.line))
    compose = isinstance(command, Scalar) or entrypoint is not None or tree.get("environment") is not None
    argv: list[Word] = []
    for part in (entrypoint, command, arguments):
        if part is not None:
            argv += _words(part, path, env, compose, notes)
    served = tree.get("modelFormat")
    if isinstance(served, Mapping) and isinstance(served.get("name"), Scalar) and image.text == "":
        name = served.get("name")
        if isinstance(name, Scalar) and name.text in ("vllm", "huggingface"):
            image = Word("vllm/kserve", image.span)
    if not argv or not (_starts(argv) or "vllm" in image.text or ("vllm" in role.lower() and argv[0].text.startswith("--"))):
        return Read([], notes if _starts(argv) else [])
    if "vllm" not in image.text and not _starts(argv):
        image = Word("vllm/unnamed", image.span)
    found = container_deployment(image, argv, env, role, path)
    for deployment in found:
        if deployment.version is None and deployment.version_source.startswith("image vllm/"):
            deployment.version_source = ""
    return Read([_checked(d) for d in found], notes)


def _checked(deployment: Deployment) -> Deployment:
    if deployment.span.line <= 0:
        deployment.span = Span(deployment.span.path, 1)
    return deployment


def _starts(argv: list[Word]) -> bool:
    text = " ".join(w.text for w in argv)
    return any(entry_at(argv, i) for i in range(min(len(argv), 6))) or bool(
        re.search(r"vllm\s+serve|sglang\s+serve|-m\s+(vllm\.entrypoints|sglang\.launch_server)", text)
    )


def _words(tree: Tree, path: str, env: dict[str, Word], compose: bool, notes: list[Note]) -> list[Word]:
    if isinstance(tree, Sequence):
        words = [word_of(item, path) for item in tree.items]
        return [_block(w, item) for w, item in zip([_interpolate(w, env, compose) for w in words], tree.items, strict=True)]
    if isinstance(tree, Scalar):
        if not compose and "\n" not in tree.text and " " not in tree.text.strip():
            return [_interpolate(word_of(tree, path), env, False)]
        line = tree.line + (1 if tree.block else 0)
        text = tree.text.replace("$$", "\ue002")
        # a folded or plain multi-line scalar is one line to the program
        script = read_script(
            text if tree.block and "\\\n" in text else text.replace("\n", " "), path, line, 1 if tree.block else tree.column, env
        )
        notes.extend(script.notes)
        if not script.commands:
            return []
        return [Word(w.text.replace("\ue002", "$"), _within(w.span, tree), w.splat) for w in script.commands[0].words]
    return []


def _within(span: Span, scalar: Scalar) -> Span:
    line = min(max(span.line, scalar.line), max(scalar.end_line, scalar.line))
    return Span(span.path, line, span.column if line == span.line else 1, line if span.end_line == span.line else 0, span.end_column)


def _block(word: Word, item: Tree) -> Word:
    """A block scalar's text starts on the line below its marker."""
    if isinstance(item, Scalar) and item.block:
        return Word(word.text, Span(word.span.path, word.span.line + 1, 1, word.span.end_line, word.span.end_column), word.splat)
    return word


def _interpolate(word: Word, env: dict[str, Word], compose: bool) -> Word:
    if compose:

        def value(match: re.Match[str]) -> str:
            if match.group(0) == "$$":
                return "$"
            default = match.group(2)
            return default if default is not None else unknown(match.group(0))

        return Word(re.sub(r"\$\$|\$\{(\w+)(?::?-([^}]*))?[^}]*\}|\$(\w+)", value, word.text), word.span, word.splat)
    return Word(
        _K8S_VARIABLE.sub(lambda m: env[m.group(1)].text if m.group(1) in env else unknown(m.group(0)), word.text), word.span, word.splat
    )


def image_of(tree: Mapping, path: str) -> Word | None:
    """`image: repo:tag` or `image: {repository, tag}`."""
    image = tree.get("image") or tree.get("containerImage")
    if isinstance(image, Scalar):
        return word_of(image, path)
    if isinstance(image, Mapping):
        repository, tag = image.get("repository"), image.get("tag")
        if isinstance(repository, Scalar):
            suffix = f":{tag.text}" if isinstance(tag, Scalar) else ""
            return Word(repository.text + suffix, span_of(repository, path))
    return None


def environment(tree: Mapping, path: str) -> dict[str, Word]:
    """`env` and `environment` as a list of name and value, a list of `K=V`, or a map; references are symbolic."""
    out: dict[str, Word] = {}
    for key in ("env", "environment", "extra_env", "envs"):
        value = tree.get(key)
        if isinstance(value, Mapping):
            for name, item in value.entries.items():
                if isinstance(item, Scalar):
                    out[name] = _env_word(item, path)
        elif isinstance(value, Sequence):
            for item in value.items:
                if isinstance(item, Scalar):
                    name, equals, text = item.text.partition("=")
                    out[name] = Word(text if equals else unknown(f"${name}"), span_of(item, path))
                elif isinstance(item, Mapping) and isinstance(item.get("name"), Scalar):
                    named, given = item.get("name"), item.get("value")
                    assert isinstance(named, Scalar)
                    text = given.text if isinstance(given, Scalar) else unknown(f"${named.text}")
                    out[named.text] = Word(text, span_of(given if isinstance(given, Scalar) else named, path))
    return out


def _env_word(item: Scalar, path: str) -> Word:
    text = item.text
    if OPEN not in text and re.search(r"\$\{?\w", text):
        text = re.sub(r"\$\{(\w+)(?::?-([^}]*))?\}|\$(\w+)", lambda m: m.group(2) if m.group(2) is not None else unknown(m.group(0)), text)
    return Word(text, span_of(item, path))

"""YAML and JSON files: what kind of document it is, and the deployments in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphlint.config.deployment import Deployment
from graphlint.config.readers import Read
from graphlint.config.readers.containers import container, environment
from graphlint.config.readers.launch import entry_at, script_deployments
from graphlint.config.readers.recipes import is_recipe, read_recipe
from graphlint.config.readers.yaml_tree import Mapping, Scalar, Sequence, Tree, load_documents, plain, span_of, word_of
from graphlint.config.versions import version_in_image
from graphlint.config.words import Note, Span, Word

#: options whose presence at the top of a map makes it a vLLM configuration file or an engine-argument block
_TELLING = {
    "compilation-config",
    "speculative-config",
    "attention-backend",
    "attention-config",
    "cudagraph-capture-sizes",
    "max-cudagraph-capture-size",
    "max-num-seqs",
    "max-num-batched-tokens",
    "tensor-parallel-size",
    "data-parallel-size",
    "enforce-eager",
    "gpu-memory-utilization",
    "enable-expert-parallel",
    "decode-context-parallel-size",
    "optimization-level",
    "kv-transfer-config",
    "all2all-backend",
}
_SCRIPT = re.compile(r"vllm\s+serve|sglang\s+serve|-m\s+(vllm\.entrypoints|sglang\.launch_server)|vllm/vllm-openai")


def read_json(text: str, path: str) -> Read:
    """JSON documents are read as YAML, which contains JSON; JSON lines as several documents."""
    return read_yaml(text, path)


def read_yaml(text: str, path: str, line: int = 1) -> Read:
    """Deployments of all documents of a file."""
    documents, notes = load_documents(text, path, line)
    found: list[Deployment] = []
    walker = _Walker(path, notes)
    for document in documents:
        if isinstance(document, Mapping) and is_recipe(document):
            read = read_recipe(document, path)
            found += read.deployments
            notes += read.notes
            continue
        if isinstance(document, Mapping):
            file = _configuration_file(document, path)
            if file is not None:
                found.append(file)
                continue
        found += walker.walk(document, ())
    return Read(found, notes)


def yaml_entries(text: str, path: str) -> tuple[list[tuple[str, object, Span]], list[Note]]:
    """Top-level (key, value, place) of a vLLM configuration file, for `--config FILE`."""
    documents, notes = load_documents(text, path)
    if documents and isinstance(documents[0], Mapping):
        return _entries(documents[0], path), notes
    return [], notes


def _entries(mapping: Mapping, path: str) -> list[tuple[str, object, Span]]:
    out: list[tuple[str, object, Span]] = []
    for key, value in mapping.entries.items():
        end = span_of(value, path)
        at = mapping.key_lines.get(key, end.line)
        out.append((key, plain(value), Span(path, at, 1, max(end.end_line, at), end.end_column if end.end_line else 0)))
    return out


def _configuration_file(document: Mapping, path: str) -> Deployment | None:
    keys = {k.replace("_", "-") for k in document.entries}
    if keys & {"services", "apiVersion", "kind", "jobs", "steps", "on", "name"} or not keys & _TELLING:
        return None
    if len(keys & _TELLING) < 2 and not keys & {"model", "compilation-config", "speculative-config"}:
        return None
    if any(
        isinstance(v, Mapping)
        and k.replace("_", "-") not in _TELLING
        and not k.replace("_", "-").endswith(("config", "kwargs", "overrides"))
        for k, v in document.entries.items()
    ):
        return None
    return _from_values(document, path, "")


def _from_values(mapping: Mapping, path: str, name: str) -> Deployment:
    """A map of engine arguments; the words carry the places of the keys."""
    entries = _entries(mapping, path)
    words = [Word("--config", Span(path, mapping.line)), Word(f"<{path}>", Span(path, mapping.line))]
    deployment = Deployment("vllm", Span(path, mapping.line), words, name=name, entry="values")
    deployment.inline = entries
    return deployment


class _Walker:
    """Looks for containers, services, scripts and argument blocks in a document of any shape."""

    def __init__(self, path: str, notes: list[Note]) -> None:
        self.path = path
        self.notes = notes
        self.depth = 0
        self._seen: set[int] = set()

    def walk(self, tree: Tree, where: tuple[str, ...]) -> list[Deployment]:
        if id(tree) in self._seen or len(where) > 40:
            return []
        if isinstance(tree, Scalar):
            return self._script(tree, where)
        self._seen.add(id(tree))
        if isinstance(tree, Sequence):
            command = self._command_list(tree, where)
            if command:
                return command
            found: list[Deployment] = []
            for index, item in enumerate(tree.items):
                found += self.walk(item, (*where, _item_name(item) or str(index)))
            return found
        return list(self._mapping(tree, where))

    def _mapping(self, tree: Mapping, where: tuple[str, ...]) -> Iterator[Deployment]:
        consumed: set[str] = set()
        role = _role(where)
        here = container(tree, self.path, role)
        if here.deployments:
            consumed |= {"args", "command", "entrypoint", "env", "environment", "image"}
            self.notes.extend(here.notes)
            yield from here.deployments
        elif isinstance(tree.get("server_args"), Scalar) and tree.get("model_name") is not None:
            consumed |= {"server_args", "env"}
            yield from self._server_args(tree)
        elif isinstance(tree.get("vllmConfig"), Mapping):
            consumed.add("vllmConfig")
            yield self._production_stack(tree, role)
        elif where and where[-1] in ("vllm", "engine_args", "engineArgs", "vllm_cfg", "vllm_kwargs", "llm_kwargs") and _is_arguments(tree):
            yield _from_values(tree, self.path, role)
            return
        environment_here = environment(tree, self.path)
        for key, value in tree.entries.items():
            if key in consumed:
                continue
            for deployment in self.walk(value, (*where, _item_name(tree) or "", key)):
                if key in ("run", "script", "command", "commands"):
                    deployment.env = {**environment_here, **deployment.env}
                yield deployment

    def _server_args(self, tree: Mapping) -> list[Deployment]:
        model, arguments = tree.get("model_name"), tree.get("server_args")
        assert isinstance(arguments, Scalar)
        line = arguments.line + (1 if arguments.block else 0)
        text = f"vllm serve {model.text if isinstance(model, Scalar) else ''} {' '.join(arguments.text.split(chr(10)))}"
        found, notes = script_deployments(text, self.path, line)
        self.notes.extend(notes)
        for deployment in found:
            deployment.env.update(environment(tree, self.path))
            deployment.args = [Word(w.text, _clamp(w.span, arguments), w.splat) for w in deployment.args]
            deployment.span = span_of(arguments, self.path)
        return found

    def _production_stack(self, tree: Mapping, role: str) -> Deployment:
        """vllm-project/production-stack: `modelSpec[].vllmConfig` with camel-case options and `extraArgs`."""
        names = {
            "maxModelLen": "--max-model-len",
            "tensorParallelSize": "--tensor-parallel-size",
            "maxNumSeqs": "--max-num-seqs",
            "gpuMemoryUtilization": "--gpu-memory-utilization",
            "dtype": "--dtype",
        }
        config = tree.get("vllmConfig")
        assert isinstance(config, Mapping)
        words: list[Word] = []
        model = tree.get("modelURL")
        if isinstance(model, Scalar):
            words.append(word_of(model, self.path))
        for key, value in config.entries.items():
            if key == "extraArgs" and isinstance(value, Sequence):
                words += [word_of(item, self.path) for item in value.items]
            elif key in names and isinstance(value, Scalar):
                words += [Word(names[key], span_of(value, self.path)), word_of(value, self.path)]
        deployment = Deployment("vllm", Span(self.path, config.line), words, environment(tree, self.path), name=role)
        repository, tag = tree.get("repository"), tree.get("tag")
        if isinstance(repository, Scalar) and isinstance(tag, Scalar):
            stated = version_in_image(f"{repository.text}:{tag.text}")
            if stated is not None:
                deployment.version, deployment.version_source = str(stated[1]), f"{repository.text}:{tag.text}"
        return deployment

    def _command_list(self, tree: Sequence, where: tuple[str, ...]) -> list[Deployment]:
        if not tree.items or not all(isinstance(i, Scalar) for i in tree.items):
            return []
        words = [word_of(i, self.path) for i in tree.items]
        for index in range(min(len(words), 4)):
            started = entry_at(words, index)
            if started is not None:
                engine, entry, rest = started
                return [Deployment(engine, words[index].span, words[rest:], {}, name=_role(where), entry=entry)]
        return []

    def _script(self, tree: Scalar, where: tuple[str, ...]) -> list[Deployment]:
        if not _SCRIPT.search(tree.text):
            return []
        line = tree.line + (1 if tree.block else 0)
        if (where and where[-1] in ("guide", "description", "readme", "notes")) or "```" in tree.text:
            from graphlint.config.readers.markdown import read_markdown

            found = read_markdown("\n" * (line - 1) + tree.text, self.path).deployments
        else:
            found, notes = script_deployments(tree.text, self.path, line, 1 if tree.block else tree.column)
            self.notes.extend(notes if found else [])
        for deployment in found:
            deployment.name = deployment.name or _role(where)
        return found


def _clamp(span: Span, scalar: Scalar) -> Span:
    return Span(span.path, scalar.line, scalar.column, scalar.end_line, scalar.end_column)


def _is_arguments(tree: Mapping) -> bool:
    keys = {k.replace("_", "-") for k in tree.entries}
    return bool(keys & _TELLING) and "image" not in keys


def _item_name(tree: Tree) -> str:
    if isinstance(tree, Mapping):
        name = tree.get("name")
        metadata = tree.get("metadata")
        if isinstance(name, Scalar) and "\n" not in name.text:
            return name.text
        if isinstance(metadata, Mapping) and isinstance(metadata.get("name"), Scalar):
            return metadata.get("name").text  # type: ignore[union-attr]
    return ""


_STRUCTURE = {
    "spec",
    "template",
    "containers",
    "services",
    "initContainers",
    "jobs",
    "steps",
    "run",
    "extraPodSpec",
    "mainContainer",
    "args",
    "command",
    "commands",
    "data",
    "metadata",
    "items",
    "predictor",
    "model",
    "leaderTemplate",
    "leaderWorkerTemplate",
    "workerTemplate",
    "",
}


def _role(where: tuple[str, ...]) -> str:
    """The names on the way that tell deployments apart: service, role (prefill, decode), container."""
    return ".".join(dict.fromkeys(part for part in where if part not in _STRUCTURE and not part.isdigit()))

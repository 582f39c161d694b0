"""Kernels of a project: sources from the facts, models built when a launch asks for them, and kept in the cache."""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterable

from graphlint.facts.cache import Cache, cache_folder, engine_key
from graphlint.facts.expr import UNKNOWN, Expr, children
from graphlint.facts.jit import kernels_in
from graphlint.facts.kernels import KernelModel, KernelSource
from graphlint.facts.wire import decode_model, encode_model
from graphlint.kernel_models import build
from graphlint.project.pool import spread
from graphlint.source.text import split_lines

#: fewer bytes of kernels than this are modelled in this process
_POOL_BYTES = 60_000


class KernelDef:
    """A Triton kernel with the file it is in. `text` has the lines of every kernel of that file in their places."""

    __slots__ = ("_model", "_steering", "id", "module", "path", "source", "text")

    def __init__(self, module: str, path: str, source: KernelSource, text: str) -> None:
        self.id = f"{module}:{source.qualname}"
        self.module = module
        self.path = path
        self.source = source
        self.text = text
        self._model: KernelModel | None = None
        self._steering: frozenset[str] | None = None

    @property
    def model(self) -> KernelModel:
        """Its symbolic summary."""
        if self._model is None:
            self._model = _models(self.text, (self.source.qualname,))[0]
        return self._model

    @model.setter
    def model(self, model: KernelModel) -> None:
        self._model = model

    @property
    def steering(self) -> frozenset[str]:
        """Pointers whose loaded values decide an address, a bound or a condition."""
        if self._steering is None:
            self._steering = _steering(self.model)
        return self._steering

    @property
    def ready(self) -> bool:
        """The model is there already."""
        return self._model is not None


def prepare(kernels: Iterable[KernelDef], *, jobs: int, cache: bool) -> None:
    """Models of many kernels at once: from the cache where the source is known, the others from several processes."""
    wanted = [kernel for kernel in kernels if not kernel.ready]
    if not wanted:
        return
    store = Cache(cache_folder() / "facts.sqlite") if cache else None
    keys: dict[str, bytes] = {}
    if store is not None:
        keys = _keys(wanted)
        blobs = store.get(keys.values())
        for kernel in wanted:
            blob = blobs.get(keys[kernel.id])
            if blob is not None:
                try:
                    kernel.model = decode_model(blob)
                except Exception:  # noqa: BLE001  a damaged entry is as good as none
                    continue
    files: dict[str, list[KernelDef]] = defaultdict(list)
    for kernel in wanted:
        if not kernel.ready:
            files[kernel.text].append(kernel)
    groups = list(files.items())
    work = [(text, tuple(kernel.source.qualname for kernel in group)) for text, group in groups]
    fresh: list[tuple[bytes, bytes]] = []
    sizes = [sum(kernel.source.span.end_line - kernel.source.span.line for kernel in group) * 40 for _, group in groups]
    for number, found in spread(_encoded, work, sizes, jobs, _POOL_BYTES):
        for kernel, blob in zip(groups[number][1], found, strict=True):
            kernel.model = decode_model(blob)
            if store is not None:
                fresh.append((keys[kernel.id], blob))
    if store is not None:
        if fresh:
            store.put(fresh)
        store.close()


def _keys(kernels: Iterable[KernelDef]) -> dict[str, bytes]:
    stamp = engine_key()
    digests: dict[str, bytes] = {}
    keys: dict[str, bytes] = {}
    for kernel in kernels:
        digest = digests.get(kernel.text)
        if digest is None:
            digest = digests[kernel.text] = hashlib.blake2b(kernel.text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        keys[kernel.id] = hashlib.blake2b(stamp + digest + kernel.source.qualname.encode(), digest_size=16).digest()
    return keys


def _encoded(work: tuple[str, tuple[str, ...]]) -> list[bytes]:
    return [encode_model(model) for model in _models(*work)]


def _models(text: str, wanted: tuple[str, ...]) -> list[KernelModel]:
    """Models of some kernels of a text; the other kernels in it are their helpers."""
    found = kernels_in(ast.parse(text))
    helpers = {name.rsplit(".", 1)[-1]: node for name, node in found}
    nodes = dict(found)  # of two definitions of a name the last, as in the index
    lines = split_lines(text)
    return [build(nodes[name], name, lines, helpers) for name in wanted]


def _steering(model: KernelModel) -> frozenset[str]:
    found: set[str] = {deref.source for deref in model.derefs}
    stack: list[Expr] = [test for path in model.exits for test in path.when]
    for segment in model.segments:
        stack.extend((segment.lo, segment.hi, *segment.when, *(segment.inner or ())))
        if not segment.exact:
            found.update(model.pointers if segment.kind == "store" and segment.lo == UNKNOWN else ())
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node[0] == "load":
            found.add(node[1])
        stack.extend(children(node))
    return frozenset(found)

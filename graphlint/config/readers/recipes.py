"""vllm-project/recipes files: the cross product of variants, hardware, strategies and speculative modes, one deployment each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from graphlint.config.deployment import Deployment
from graphlint.config.readers import Read
from graphlint.config.readers.containers import environment
from graphlint.config.readers.yaml_tree import Mapping, Scalar, Sequence, Tree, word_of
from graphlint.config.words import Note, Span, Word

#: more combinations than this are cut, with a note
LIMIT = 160
_STRATEGY_ARGS = {
    "single_node_tep": ("--enable-expert-parallel",),
    "multi_node_tep": ("--enable-expert-parallel",),
    "single_node_dep": ("--enable-expert-parallel",),
    "multi_node_dep": ("--enable-expert-parallel",),
}


class _Layer(NamedTuple):
    name: str
    words: list[Word]
    env: dict[str, Word]
    replaces: bool = False
    #: variants that this layer is offered for (all where empty), hardware that it is not offered for
    variants: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    #: options of the layers below that this one takes out
    removes: frozenset[str] = frozenset()


def is_recipe(document: Mapping) -> bool:
    """Whether the document has a recipe's shape."""
    model = document.get("model")
    return (
        isinstance(model, Mapping)
        and model.get("model_id") is not None
        and (document.get("variants") is not None or model.get("base_args") is not None)
    )


def read_recipe(document: Mapping, path: str) -> Read:
    """All distinct command lines of a recipe, and the fences of its guide."""
    notes: list[Note] = []
    found: dict[tuple[str, ...], Deployment] = {}
    dropped = 0
    for deployment in _combinations(document, path):
        key = (deployment.version or "", *(w.text for w in deployment.args), *sorted(f"{k}={v.text}" for k, v in deployment.env.items()))
        if key in found:
            continue
        if len(found) >= LIMIT:
            dropped += 1
            continue
        found[key] = deployment
    if dropped:
        notes.append(Note(path, 1, f"{dropped} further combinations of this recipe are not shown (limit {LIMIT})"))
    guide = document.get("guide")
    if isinstance(guide, Scalar):
        from graphlint.config.readers.markdown import read_markdown

        line = guide.line + (1 if guide.block else 0)
        for deployment in read_markdown("\n" * (line - 1) + guide.text, path).deployments:
            words = tuple(w.text for w in deployment.args)
            key = ("guide", str(deployment.span.line), *words)
            found[key] = deployment
    return Read(list(found.values()), notes)


def _combinations(document: Mapping, path: str) -> Iterator[Deployment]:
    model = document.get("model")
    assert isinstance(model, Mapping)
    base = [*_list(model.get("base_args"), path)]
    features, modes = _features(document, path)
    variants = document.get("variants")
    named = dict(variants.entries) if isinstance(variants, Mapping) else {}
    for variant_name, variant in (named or {"default": Mapping(line=model.line)}).items():
        if not isinstance(variant, Mapping):
            continue
        model_id = variant.get("model_id") or model.get("model_id")
        minimum = variant.get("min_vllm_version") or model.get("min_vllm_version")
        args = [word_of(model_id, path)] if model_id is not None else []
        common = [*args, *base, *_list(variant.get("extra_args"), path)]
        common_env = {**environment(model, path), **environment(variant, path)}
        supported = variant.get("supported_hardware")
        only = {i.text for i in supported.items if isinstance(i, Scalar)} if isinstance(supported, Sequence) else set()
        precision = variant.get("precision")
        nvidia = isinstance(precision, Scalar) and precision.text == "nvfp4"
        for hardware in _hardware(document, variant, path):
            if (only and hardware.name and hardware.name not in only) or (nvidia and hardware.name.startswith(("amd", "mi3"))):
                continue
            for strategy in _strategies(document, hardware.name, path):
                for mode in modes:
                    if (mode.variants and variant_name not in mode.variants) or hardware.name in mode.without:
                        continue
                    middle = [] if strategy.replaces else hardware.words
                    words = _without([*common, *features, *middle], strategy.removes) + strategy.words
                    words = _without(words, hardware.removes | mode.removes) + mode.words
                    name = " / ".join(n for n in (variant_name, hardware.name, strategy.name, mode.name) if n)
                    deployment = Deployment(
                        "vllm",
                        args[0].span if args else Span(path, model.line),
                        words,
                        {**common_env, **hardware.env, **strategy.env, **mode.env},
                        name=name,
                    )
                    deployment.gpu, deployment.layered = hardware.name or None, True
                    if isinstance(minimum, Scalar):
                        deployment.minimum = minimum.text
                        deployment.version_source = f"min_vllm_version {minimum.text}"
                    yield deployment


def _without(words: list[Word], removed: frozenset[str]) -> list[Word]:
    """The words less these options and their values."""
    if not removed:
        return words
    out: list[Word] = []
    dropping = False
    for word in words:
        if word.text.startswith("-"):
            dropping = word.text.partition("=")[0] in removed
        if not dropping:
            out.append(word)
    return out


def _removed(tree: Mapping | None) -> frozenset[str]:
    names = tree.get("remove_args") if tree is not None else None
    return frozenset(i.text for i in names.items if isinstance(i, Scalar)) if isinstance(names, Sequence) else frozenset()


def _list(tree: Tree | None, path: str) -> list[Word]:
    words: list[Word] = []
    for item in tree.items if isinstance(tree, Sequence) else ():
        word = word_of(item, path)
        if word.text.startswith("-") and " " in word.text and not any(c in word.text for c in "'\"{["):
            words += [Word(part, word.span) for part in word.text.split()]  # the renderer joins all items into one command line
        else:
            words.append(word)
    return words


def _features(document: Mapping, path: str) -> tuple[list[Word], list[_Layer]]:
    """Arguments of the features that are on by default, and the alternatives: each speculative mode and none."""
    words: list[Word] = []
    modes = [_Layer("", [], {})]
    features = document.get("features")
    opt_in = document.get("opt_in_features")
    optional = {i.text for i in opt_in.items if isinstance(i, Scalar)} if isinstance(opt_in, Sequence) else set()
    for name, feature in features.entries.items() if isinstance(features, Mapping) else ():
        if not isinstance(feature, Mapping):
            continue
        alternatives = feature.get("modes")
        if isinstance(alternatives, Mapping):
            for mode_name, mode in alternatives.entries.items():
                if isinstance(mode, Mapping):
                    modes.append(_mode(f"{name}:{mode_name}", mode, path))
        elif name in optional or "spec" in name:
            modes.append(_mode(name, feature, path))
        else:
            words += _list(feature.get("args"), path)
    return words, modes


def _mode(name: str, mode: Mapping, path: str) -> _Layer:
    offered = mode.get("variants")
    hardware = mode.get("hardware")
    variants = {i.text for i in offered.items if isinstance(i, Scalar)} if isinstance(offered, Sequence) else set()
    without = (
        {k for k, v in hardware.entries.items() if isinstance(v, Scalar) and v.text == "unsupported"}
        if isinstance(hardware, Mapping)
        else set()
    )
    return _Layer(
        name, _list(mode.get("args"), path), environment(mode, path), False, frozenset(variants), frozenset(without), _removed(mode)
    )


def _hardware(document: Mapping, variant: Mapping, path: str) -> list[_Layer]:
    shared, own = document.get("hardware_overrides"), variant.get("hardware_overrides")
    names: dict[str, None] = {}
    for tree in (shared, own):
        if isinstance(tree, Mapping):
            names.update(dict.fromkeys(tree.entries))
    layers = [_Layer("", [], {})] if not names else []
    for name in names:
        words: list[Word] = []
        env: dict[str, Word] = {}
        removes: frozenset[str] = frozenset()
        for tree in (shared, own):
            override = tree.get(name) if isinstance(tree, Mapping) else None
            if isinstance(override, Mapping):
                removes |= _removed(override)
                words += _list(override.get("extra_args"), path)
                env.update(environment(override, path))
        layers.append(_Layer(name, words, env, removes=removes))
    return layers


def _strategies(document: Mapping, hardware: str, path: str) -> list[_Layer]:
    overrides = document.get("strategy_overrides")
    compatible = document.get("compatible_strategies")
    names = [i.text for i in compatible.items if isinstance(i, Scalar)] if isinstance(compatible, Sequence) else []
    table = overrides.entries if isinstance(overrides, Mapping) else {}
    layers: list[_Layer] = []
    for name in dict.fromkeys([*names, *table]):
        override = table.get(name)
        expert = [Word(a, Span(path, override.line if isinstance(override, Mapping) else 1)) for a in _STRATEGY_ARGS.get(name, ())]
        if not isinstance(override, Mapping):
            layers.append(_Layer(name, expert, {}))
            continue
        roles = [(role, override.get(role)) for role in ("prefill", "decode") if isinstance(override.get(role), Mapping)]
        if roles:
            for role, tree in roles:
                assert isinstance(tree, Mapping)
                layers.append(
                    _Layer(
                        f"{name} {role}",
                        _list(tree.get("vllm_args"), path),
                        {**environment(override, path), **environment(tree, path)},
                        True,
                    )
                )
            continue
        nested = override.get("hardware_overrides")
        own = nested.get(hardware) if isinstance(nested, Mapping) else None
        words = [*expert, *_list(override.get("extra_args"), path)]
        if isinstance(own, Mapping):
            words += _list(own.get("extra_args"), path)
        layers.append(
            _Layer(
                name,
                words,
                environment(override, path),
                isinstance(own, Mapping),
                removes=_removed(override) | _removed(own if isinstance(own, Mapping) else None),
            )
        )
    return layers or [_Layer("", [], {})]

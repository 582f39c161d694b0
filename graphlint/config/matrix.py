"""The support matrix of one release or checkout, and what changed between two: rows of plain data, rendered elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from graphlint.config.modes import LETTER, LEVELS, VLLM_COMPILE, Level, Mode
from graphlint.config.resolver import resolve_support
from graphlint.config.sizes import StartupError
from graphlint.config.tables import Backend, Support, Tables, bundled_versions, load_release, nearest_release
from graphlint.config.versions import Version, parse_version

#: modes whose outcome the matrix shows
SHOWN_MODES: tuple[Mode, ...] = ("FULL_AND_PIECEWISE", "FULL")


class Row(NamedTuple):
    """One backend: its possible levels with conditions and places, and what a mode becomes without and with speculative decoding."""

    name: str
    kind: str
    levels: tuple[Support, ...]
    #: requested mode -> (plain decode, speculative decode), several results joined by " | "
    results: dict[str, tuple[str, str]]
    builder: str
    note: str

    @property
    def letters(self) -> str:
        """`A`, `U`, `S`, `N`, or several such as `A|U`; `-` without a class."""
        return "|".join(dict.fromkeys(LETTER.get(s.level, "?") for s in self.levels)) or "-"


class Matrix(NamedTuple):
    """Everything about graphs that a release declares."""

    version: str
    source: str
    rows: list[Row]
    tables: Tables


class UnknownRelease(ValueError):
    """Neither a folder with a vllm package nor a modelled release."""


def load_matrix(target: str) -> Matrix:
    """The matrix of a bundled release (`0.33.0`) or of a checkout's own source (a folder). Raises UnknownRelease."""
    path = Path(target)
    if path.is_dir():
        from graphlint.config.extract.tables import NotACheckout, checkout_version, extract_tables, package_root

        try:
            root = package_root(path)
        except NotACheckout as error:
            raise UnknownRelease(str(error)) from None
        stated = checkout_version(root) or "unknown"
        tables = extract_tables(root, stated, architectures=False)
        return build_matrix(tables, f"{target} ({stated})")
    try:
        version = parse_version(target)
    except ValueError:
        raise UnknownRelease(f"{target}: no such folder, and no release such as 0.33.0") from None
    known = bundled_versions()
    if version not in known:
        near = nearest_release(version)
        hint = f"; the nearest is {near}" if near and version < known[-1] else ""
        raise UnknownRelease(
            f"vLLM {version} is not among the modelled releases ({known[0]} to {known[-1]}){hint}: give a checkout's folder"
        )
    return build_matrix(load_release(version), f"vLLM {version}")


def build_matrix(tables: Tables, source: str) -> Matrix:
    """All rows: enum backends first, then builders behind no name."""
    try:
        version = parse_version(tables.version)
    except ValueError:
        version = bundled_versions()[-1]
    rows = [_row(name, backend, version) for name, backend in tables.backends.items()]
    rows += [_row(_short(name), backend, version) for name, backend in tables.builders.items()]
    return Matrix(tables.version, source, rows, tables)


def _short(builder: str) -> str:
    package, _, name = builder.rpartition(".")
    return f"{name} ({package.removeprefix('vllm.')})"


def _row(name: str, backend: Backend, version: Version) -> Row:
    results: dict[str, tuple[str, str]] = {}
    for mode in SHOWN_MODES:
        plain = _results(mode, backend.support, 1, version)
        speculative = _results(mode, backend.support, 2, version)
        results[mode] = (plain, speculative)
    return Row(name, backend.kind, backend.support, results, backend.builder, backend.note)


def _results(mode: Mode, support: tuple[Support, ...], query_len: int, version: Version) -> str:
    out: dict[str, None] = {}
    for case in support:
        out[_result(mode, case, query_len, version)] = None
    return " | ".join(out)


def _result(mode: Mode, case: Support, query_len: int, version: Version) -> str:
    level: Level | None = next((known for known in LEVELS if known == case.level), None)
    if level is None:
        return "?"
    try:
        steps = resolve_support(mode, level, "", query_len, VLLM_COMPILE, True, version)
    except StartupError:
        return "startup error"
    return steps[-1].mode if steps else mode


def readable(condition: str) -> str:
    """A condition's source text, shortened to what a person needs."""
    text = condition
    for pattern, replacement in (
        (r"current_platform\.is_device_capability_family\((\d+)\)", r"SM\1 family"),
        (r"current_platform\.is_device_capability\((\d+)\)", r"SM\1"),
        (r"not current_platform\.has_device_capability\((\d+)\)", r"below SM\1"),
        (r"current_platform\.has_device_capability\((\d+)\)", r"SM\1 or above"),
        (r"current_platform\.is_(\w+)\(\)", lambda m: m.group(1).upper()),
        (r"can_use_trtllm_attention\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", "TRT-LLM attention usable"),
        (r"get_flash_attn_version\(\) in \(3, 4\)", "FlashAttention 3 or 4"),
        (r"get_flash_attn_version\(\) == 3", "FlashAttention 3"),
        (r"vllm_config\.parallel_config\.decode_context_parallel_size > 1", "DCP > 1"),
        (r"vllm_config\.attention_config\.use_non_causal", "non-causal"),
        (r"vllm_config\.speculative_config is not None", "speculative decoding"),
        (r"vllm_config\.speculative_config\.enable_adaptive_verification", "adaptive verification"),
        (
            r"vllm_config\.speculative_config\.num_speculative_tokens is not None and "
            r"\(?vllm_config\.speculative_config\.num_speculative_tokens > 0\)?",
            "draft tokens > 0",
        ),
        (r"getattr\(kv_cache_spec, 'non_causal_multi_token_decode', False\)", "non-causal multi-token decode"),
        (r"len\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\) > 0 and ", ""),
        (r"iter_layer_specs\(kv_cache_spec\) and ", ""),
        (r"spec\.kv_quant_mode\.is_nvfp4", "NVFP4 KV cache"),
        (r"_is_xqa_head_dim_supported\(spec\.head_size\)", "XQA head size"),
        (r"_has_unclamped_window\(.*\)", "a layer with an unclamped window"),
        (r"not \(not (\w[^()]*)\)", r"\1"),
        (r"\(not not ", "("),
    ):
        text = re.sub(pattern, replacement, text)
    return re.sub(r"\(not (?:\(not )?(TRT-LLM attention usable)\)?\)", r"\1", text) if text.startswith("(not") else text


def condition_text(case: Support) -> str:
    """All conditions of one level in words; empty for an unconditional one."""
    return "; ".join(readable(c) for c in case.when)


class Change(NamedTuple):
    """One difference between two releases."""

    what: str
    name: str
    before: str
    after: str


def compare(old: Matrix, new: Matrix) -> list[Change]:
    """What changed: levels, backends, defaults, attention ops, breakable and runner lists, options and environment names."""
    changes: list[Change] = []
    before, after = {r.name: r for r in old.rows}, {r.name: r for r in new.rows}
    for name in [*before, *(n for n in after if n not in before)]:
        a, b = before.get(name), after.get(name)
        if a is None and b is not None:
            changes.append(Change("backend", name, "-", b.letters))
        elif b is None and a is not None:
            changes.append(Change("backend", name, a.letters, "removed"))
        elif a is not None and b is not None:
            if a.letters != b.letters:
                changes.append(Change("level", name, a.letters, b.letters))
            elif [(s.level, s.when) for s in a.levels] != [(s.level, s.when) for s in b.levels]:
                changes.append(Change("condition", name, _levels_text(a), _levels_text(b)))
    for level in sorted({*old.tables.optimization, *new.tables.optimization}):
        x, y = old.tables.optimization.get(level, "-"), new.tables.optimization.get(level, "-")
        if x != y:
            changes.append(Change("default", f"-O{level}", x, y))
    for what, get in (
        ("attention op", lambda t: t.attention_ops),
        ("break point", lambda t: t.break_points),
        ("breakable by default", lambda t: t.breakable_archs),
        ("V2 by default", lambda t: t.v2_archs),
        ("option", lambda t: [f for f in t.flags if not f.startswith("--no-")]),
        ("environment", lambda t: t.env),
        ("speculative method", lambda t: t.methods),
        ("compilation field", lambda t: t.fields.get("compilation_config", ())),
    ):
        had, has = set(get(old.tables)), set(get(new.tables))
        changes += [Change(what, name, "yes", "removed") for name in sorted(had - has)]
        changes += [Change(what, name, "-", "added") for name in sorted(has - had)]
    return changes


def _levels_text(row: Row) -> str:
    return "; ".join(f"{LETTER.get(s.level, '?')} if {condition_text(s)}" if s.when else LETTER.get(s.level, "?") for s in row.levels)

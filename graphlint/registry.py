"""Rule packs: folders of rule files, loaded by path. The engine never imports a rule."""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from graphlint.api import Rule
from graphlint.config.rules_api import DeploymentRule
from graphlint.finding import RunError

_ID = re.compile(r"[A-Z]{2,}\d{3,}")
#: rules of the shell itself, which no pack defines: id -> name
SHELL_RULES = {"GL001": "unused-suppression"}


class PackError(Exception):
    """A pack that cannot be used at all: the folder is missing, or two rules share an id or a name."""


class UnknownRule(Exception):
    """A selector that means no rule; the message suggests what was meant."""


class RuleEntry(msgspec.Struct, frozen=True):
    """A loaded rule, with where it came from. `family` is the folder it lies in; `doc` is its page."""

    rule: Rule | DeploymentRule
    path: Path
    family: str
    doc: str


class Registry:
    """The rules of all packs, by id. `errors` are rule files that could not be loaded; the others still run."""

    def __init__(self, entries: Sequence[RuleEntry], errors: Sequence[RunError] = ()) -> None:
        self.entries = {entry.rule.id: entry for entry in sorted(entries, key=lambda entry: entry.rule.id)}
        self.errors = list(errors)

    def __iter__(self) -> Iterator[RuleEntry]:
        return iter(self.entries.values())

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def tokens(self) -> set[bytes]:
        """Byte tokens of all rules: a file with none of them matters to none."""
        return {token for entry in self for token in entry.rule.tokens}

    @property
    def names(self) -> dict[str, str]:
        """Id -> kebab-case name of every rule that can be selected."""
        return SHELL_RULES | {entry.rule.id: entry.rule.name for entry in self}

    def matching(self, selector: str) -> set[str]:
        """Ids that a selector means: an id, a family prefix (`GL2`), a rule's name, or `ALL`.

        Raises `UnknownRule` if there is none.
        """
        wanted = selector.strip().upper()
        if wanted == "ALL":
            return set(self.names)
        found = {rule for rule, name in self.names.items() if wanted and (rule.startswith(wanted) or name.upper() == wanted)}
        if not found:
            raise UnknownRule(f"no rule matches {selector.strip()!r}{self.suggestion(selector)}")
        return found

    def suggestion(self, selector: str) -> str:
        """`; did you mean ...?` for a selector that matches nothing, or where to look the rules up."""
        known = {one.lower(): one for pair in self.names.items() for one in pair}
        close = difflib.get_close_matches(selector.strip().lower(), known, n=3, cutoff=0.7)
        if not close:
            return "; `graphlint rule` lists them all"
        return f"; did you mean {' or '.join(known[one] for one in close)}?"

    def select(self, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> set[str]:
        """Ids to report: those `select` means (all of them if it is empty) less those `ignore` means.

        Where both name a rule, the longer selector wins (`--select GL201 --ignore GL2` keeps GL201), and `ignore` on a tie.
        """
        chosen = list(select)
        strength = dict.fromkeys(self.names, -1 if chosen else 0)
        for selector in chosen:
            for one in self.matching(selector):
                strength[one] = max(strength[one], _weight(selector, one))
        for selector in ignore:
            for one in self.matching(selector):
                if _weight(selector, one) >= strength[one]:
                    strength[one] = -1
        return {one for one, weight in strength.items() if weight >= 0}


def _weight(selector: str, rule_id: str) -> int:
    """How precisely a selector names a rule: nothing for ALL, the length of a prefix, all of the id for a rule's name."""
    wanted = selector.strip().upper()
    if wanted == "ALL":
        return 0
    return len(wanted) if rule_id.startswith(wanted) else len(rule_id)


def built_in_pack() -> Path:
    """The folder of the built-in rules: `graphlint/_rules` in an installed wheel, `rules/` beside the package in a checkout."""
    return _shipped("rules")


def kernels_folder() -> Path:
    """The folder of Triton reproductions: `graphlint/_kernels` in an installed wheel, `kernels/` beside the package in a checkout."""
    return _shipped("kernels")


def _shipped(name: str) -> Path:
    package = Path(__file__).resolve().parent
    installed = package / f"_{name}"
    return installed if installed.is_dir() else package.parent / name


def rule_files(pack: Path) -> list[Path]:
    """Rule files of a pack: `*.py` in it or in its family folders, names with a leading underscore aside."""
    return sorted(
        path for path in pack.rglob("*.py") if not any(part.startswith(("_", ".")) for part in path.relative_to(pack).parts)
    )


def load(packs: Sequence[Path] = ()) -> Registry:
    """The built-in rules and those of `packs`.

    A file that raises at import, defines no `RULE` or a malformed one becomes a `RunError` of kind "rule"; the rest still loads.
    Raises `PackError` where a pack folder does not exist, or two rules share an id or a name.
    """
    entries: list[RuleEntry] = []
    errors: list[RunError] = []
    taken: dict[str, Path] = {}
    for pack in (built_in_pack(), *packs):
        if not pack.is_dir():
            if pack == built_in_pack():
                continue
            raise PackError(f"rule pack {pack}: no such folder")
        for path in rule_files(pack):
            loaded = _load_file(pack, path)
            if isinstance(loaded, RunError):
                errors.append(loaded)
                continue
            for key in (loaded.rule.id, loaded.rule.name):
                if key in taken:
                    raise PackError(f"two rules are called {key}: {taken[key]} and {path}")
                taken[key] = path
            entries.append(loaded)
    return Registry(entries, errors)


def _load_file(pack: Path, path: Path) -> RuleEntry | RunError:
    shown = os.path.relpath(path).replace(os.sep, "/")
    relative = path.relative_to(pack)
    name = ".".join(("graphlint_rules", re.sub(r"\W", "_", str(pack.resolve())), *relative.with_suffix("").parts))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        return RunError(shown, "rule", "cannot be loaded as a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001  a rule file may raise anything; the other rules must still run
        del sys.modules[name]
        line, message = (error.lineno or 0, error.msg) if isinstance(error, SyntaxError) else (_line_in(error, path), str(error))
        return RunError(shown, "rule", f"the rule cannot be loaded: {type(error).__name__}: {message}", line)
    rule = getattr(module, "RULE", None)
    if not isinstance(rule, (Rule, DeploymentRule)):
        return RunError(shown, "rule", "the file defines no `RULE = Rule(...)`")
    if not _ID.fullmatch(rule.id) or rule.id in SHELL_RULES:
        return RunError(shown, "rule", f"{rule.id!r} is no usable rule id (letters, then at least three digits, as in GL201)")
    return RuleEntry(rule, path, relative.parts[0] if len(relative.parts) > 1 else "", (module.__doc__ or "").strip())


def _line_in(error: BaseException, path: Path) -> int:
    """The line of `path` in the error's traceback, deepest frame first; 0 if it was never there."""
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line

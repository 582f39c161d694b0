"""Pages of rules, made from their docstrings and metadata: what `graphlint rule` prints and what the documentation is built from."""

from __future__ import annotations

import msgspec

from graphlint.registry import Registry, RuleEntry
from graphlint.runner import UNUSED, UNUSED_DOC, UNUSED_NAME


class Page(msgspec.Struct, frozen=True):
    """One rule as documentation. `text` is Markdown."""

    id: str
    name: str
    family: str
    summary: str
    severity: str
    status: str
    since: str
    references: tuple[str, ...]
    text: str


def pages(rules: Registry) -> list[Page]:
    """Pages of all rules by id, the shell's own included."""
    return sorted([_built_in(), *map(_page, rules)], key=lambda page: page.id)


def _page(entry: RuleEntry) -> Page:
    rule = entry.rule
    head = f"# {rule.id} {rule.name}\n\n{rule.severity}, {rule.status}, since {rule.since}\n\n"
    return Page(
        rule.id, rule.name, entry.family, rule.summary, rule.severity, rule.status, rule.since, rule.references, f"{head}{entry.doc}\n"
    )


def _built_in() -> Page:
    summary = UNUSED_DOC.partition("\n")[0]
    head = f"# {UNUSED} {UNUSED_NAME}\n\ninfo, stable, since 0.1.0\n\n"
    return Page(UNUSED, UNUSED_NAME, "", summary, "info", "stable", "0.1.0", (), head + UNUSED_DOC)


def as_json(chosen: list[Page]) -> str:
    """A JSON list of the pages."""
    return msgspec.json.format(msgspec.json.encode(chosen), indent=2).decode()


def as_list(chosen: list[Page]) -> str:
    """One line a rule."""
    width = max(len(page.name) for page in chosen)
    return "".join(
        f"{page.id}  {page.name:<{width}}  {page.severity:<7}  {page.summary}{' (preview)' if page.status == 'preview' else ''}\n"
        for page in chosen
    )

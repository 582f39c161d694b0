"""Pages of the rules, made from the rules when the site is built."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from graphlint import registry, rule_pages, settings
from graphlint.api import Rule

SETTINGS_MARK = "<!-- settings -->"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """A page a rule, and their list."""
    rules = registry.load()
    pages = rule_pages.pages(rules)
    for page in pages:
        entry = rules.entries.get(page.id)
        files.append(File.generated(config, f"rules/{page.id}.md", content=_page(page, entry)))
    files.append(File.generated(config, "rules/index.md", content=_list(pages)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The table of settings, where a page asks for it."""
    return markdown.replace(SETTINGS_MARK, _settings()) if SETTINGS_MARK in markdown else markdown


def _page(page: rule_pages.Page, entry: registry.RuleEntry | None) -> str:
    text = re.sub(r"^(#+ .*)$", r"\n\1\n", page.text, flags=re.MULTILINE)
    text = re.sub(r"\b([\w.-]+/[\w.-]+)#(\d+)", r"[\1#\2](https://github.com/\1/issues/\2)", text)
    if entry is None or not isinstance(entry.rule, Rule):
        return text
    out = [text, "\n## Tested with\n"]
    for kind, title in (("bad", "Reported"), ("good", "Not reported")):
        for example in getattr(entry.rule, kind):
            sources = {"": example.source} if isinstance(example.source, str) else example.source
            out.append(f'\n??? {"failure" if kind == "bad" else "success"} "{title}: {example.name}"\n')
            for path, source in sources.items():
                code = "\n".join(f"    {line}" for line in dedent(source).strip().split("\n"))
                out.append(f'\n    ```python{f" title={path!r}" if path else ""}\n{code}\n    ```\n')
    return "".join(out)


def _list(pages: list[rule_pages.Page]) -> str:
    out = ["# Rules\n\n`graphlint rule` prints these pages in a terminal.\n"]
    family = None
    for page in pages:
        if page.family != family:
            family = page.family
            out.append(f"\n## {family.capitalize() if family else 'graphlint itself'}\n\n")
            out.append("| rule | name | severity | what it reports |\n|---|---|---|---|\n")
        summary = page.summary.replace("|", "\\|")
        preview = " (preview)" if page.status == "preview" else ""
        out.append(f"| [{page.id}]({page.id}.md) | {page.name} | {page.severity} | {summary}{preview} |\n")
    return "".join(out)


def _settings() -> str:
    rows = ["| key | default | meaning |", "|---|---|---|"]
    described = settings.schema()["properties"]
    for key, default in settings.defaults().items():
        shown = "" if default in (None, [], {}) else f"`{default}`"
        rows.append(f"| `{key}` | {shown} | {described[key]['description']} |")
    return "\n".join(rows)

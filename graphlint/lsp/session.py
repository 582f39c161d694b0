"""What the server knows: the open documents, the findings of the last analysis, what the engine believes of a document."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from graphlint import project, registry, rule_pages, settings
from graphlint.finding import Finding
from graphlint.fix import attach
from graphlint.project.describe import Described
from graphlint.runner import Outcome, run_check
from graphlint.source.discovery import display_path
from graphlint.source.files import SourceFile


class Session:
    """Runs analyses, one at a time. `root` is the folder whose configuration applies."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.outcome: Outcome | None = None
        self._described: dict[tuple[str, bytes], Described] = {}

    def check(self, documents: Mapping[str, str]) -> Outcome:
        """Check the documents (absolute path -> text) as they are in the editor, with the rest of their project from disk.

        Raises what `run_check` and `settings.options` raise.
        """
        options = settings.options(settings.find_config(self.root), {})
        given = [SourceFile(_shown(path), text.encode("utf-8", "surrogatepass")) for path, text in documents.items()]
        outcome = run_check([], options, given=given)
        attach(outcome.report.findings, outcome.sources.lines)
        self.outcome = outcome
        return outcome

    def findings(self, path: str) -> list[Finding]:
        """Findings of the last analysis in a file."""
        if self.outcome is None:
            return []
        return [finding for finding in self.outcome.report.findings if os.path.abspath(finding.path) == path]

    def rule_page(self, rule: str) -> str:
        """The page of a rule, as Markdown."""
        rules = self.outcome.rules if self.outcome is not None and self.outcome.rules is not None else registry.load()
        return next((page.text for page in rule_pages.pages(rules) if page.id == rule), "")

    def beliefs(self, path: str, text: str, line: int, word: str) -> str:
        """What the engine believes at a line, as Markdown: the extent of the name under the cursor, the buffers touched there."""
        described = self._describe(path, text)
        out: list[str] = []
        functions = [one for one in described.functions if one["line"] <= line <= one["end_line"]]
        if functions:
            function = functions[-1]
            named = [name for name in function["names"] if name["name"] == word and name["line"] <= line]
            if named:
                out.append(f"`{word}`: **{named[-1]['extent']}** (`{named[-1]['from']}`)")
            for buffer in function["buffers"]:
                events = [event for event in buffer["events"] if event["line"] == line]
                if buffer["name"] == word or events:
                    out.append(_buffer(buffer))
            if out:
                out.append(f"{function['symbol']}: {function['region']}")
        for kernel in described.kernels:
            if kernel["line"] <= line <= kernel["end_line"]:
                out += [
                    f"kernel {kernel['symbol']}: {one['kind']} `{one['pointer']}` over lanes `[{one['from']}, {one['to']})`"
                    for one in kernel["segments"] if one["line"] == line or one["pointer"] == word
                ]
        return "\n\n".join(out)

    def _describe(self, path: str, text: str) -> Described:
        data = text.encode("utf-8", "surrogatepass")
        if (path, data) not in self._described:
            self._described = {}  # of the last document only: it is asked for again as long as the text does not change
            facts = project.describe(SourceFile(_shown(path), data), None, output_format="json")
            self._described[path, data] = msgspec.json.decode(facts, type=Described)
        return self._described[path, data]


def _shown(path: str) -> str:
    return display_path(path, os.getcwd())


def _buffer(buffer: dict[str, object]) -> str:
    room = f", room for {buffer['capacity']}" if buffer["capacity"] else ""
    kept = "kept between steps" if buffer["persistent"] else "made anew each step"
    lines = [f"buffer `{buffer['name']}`: {buffer['meaning']}{room}, {kept}"]
    events = buffer["events"]
    assert isinstance(events, list)
    lines += [
        f"- line {event['line']}: {event['kind']} `[{event['from']}, {event['to']})`" + (f", {event['extent']}" if event["extent"] else "")
        for event in events
    ]
    return "\n".join(lines)



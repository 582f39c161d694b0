"""Suppression comments: `# graphlint: ignore[GL201] reason`.

A comment speaks for the line it trails, or, alone on its line, for the next line that is not a comment. Without brackets it silences
every rule; the brackets take several ids or family prefixes (`[GL201, GL3]`).
"""

from __future__ import annotations

import io
import re
import tokenize

import msgspec

_COMMENT = re.compile(r"#\s*graphlint:\s*ignore\b(?:\s*\[(?P<ids>[^\]]*)\])?")


class Suppression(msgspec.Struct):
    """One comment. `line` is the line it speaks for; `comment_line` and `column` say where it stands (1-based)."""

    line: int
    comment_line: int
    column: int
    end_column: int
    #: ids or family prefixes, upper case; empty = every rule
    ids: tuple[str, ...]
    #: ids that silenced something
    used: set[str] = msgspec.field(default_factory=set)

    def covers(self, rule: str) -> str | None:
        """Which of the ids silences `rule` ("" for a comment without brackets), or None."""
        if not self.ids:
            return ""
        return next((one for one in self.ids if rule.startswith(one)), None)


def find_suppressions(text: str) -> list[Suppression]:
    """The suppression comments of a Python file, in order. Text in string literals does not count."""
    if "graphlint:" not in text:
        return []
    out: list[Suppression] = []
    waiting: list[Suppression] = []
    code_on_line = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            row, column = token.start
            if token.type == tokenize.COMMENT:
                match = _COMMENT.search(token.string)
                if match:
                    ids = tuple(part.strip().upper() for part in (match["ids"] or "").split(",") if part.strip())
                    start = column + match.start()
                    found = Suppression(row, row, start + 1, column + match.end() + 1, ids)
                    out.append(found)
                    if code_on_line != row:
                        waiting.append(found)
            elif token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
                for found in waiting:
                    found.line = row
                waiting.clear()
                code_on_line = token.end[0]
    except (tokenize.TokenError, SyntaxError):
        pass  # the file does not parse, which is reported elsewhere: what was read so far is good
    return out

"""Words of POSIX shell and bash: quotes, expansions, continuations, each with its place."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from graphlint.config.words import CLOSE, OPEN, Note, Span

_BROKEN = re.compile(r"\\[ \t]+(?:#[^\n]*)?\n")
STOP = " \t\r\n;|&()<>"


@dataclass
class Part:
    """A piece of a word: literal text, or an expansion (`kind` "var", "command", "arith", "template")."""

    kind: str
    text: str
    quoted: bool


@dataclass
class RawWord:
    """A word before expansion."""

    parts: list[Part]
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def literal(self) -> str:
        """The text with expansions as written."""
        return "".join(p.text for p in self.parts)


class WordReader:
    """Reads words from a text. Malformed text gives a note and what could be read up to there."""

    def __init__(self, text: str, path: str, line: int = 1, column: int = 1) -> None:
        self.text = text
        self.path = path
        self.notes: list[Note] = []
        self.position = 0
        self._starts = [0]
        for index, char in enumerate(text):
            if char == "\n":
                self._starts.append(index + 1)
        self._line = line
        self._column = column
        self._broken_line = 0

    def place(self, offset: int) -> tuple[int, int]:
        """(line, column) of an offset in the file."""
        row = bisect_right(self._starts, offset) - 1
        column = offset - self._starts[row] + (self._column if row == 0 else 1)
        return row + self._line, column

    def word(self) -> RawWord | None:
        """The word at the position, None where there is none."""
        start = self.position
        parts: list[Part] = []
        text = self.text
        while self.position < len(text):
            char = text[self.position]
            if char == "\\":
                if not parts and self._broken_continuation():
                    break
                if text.startswith(("\\\n", "\\\r\n"), self.position):
                    if parts:
                        # a continuation inside a word joins it, as the shell does
                        self.position += 2 if text.startswith("\\\n", self.position) else 3
                        continue
                    break
                parts.append(Part("text", text[self.position + 1 : self.position + 2], True))
                self.position += 2
            elif char == OPEN:
                end = text.find(CLOSE, self.position)
                end = len(text) - 1 if end < 0 else end
                parts.append(Part("text", text[self.position : end + 1], False))
                self.position = end + 1
            elif char == "'":
                parts.append(self._single())
            elif char == '"':
                parts.extend(self._double())
            elif char == "$" and text.startswith("$'", self.position):
                self.position += 1
                part = self._single()
                parts.append(Part("text", part.text.encode().decode("unicode_escape", "replace"), True))
            elif char == "$":
                parts.append(self._dollar(False))
            elif char == "`":
                end = text.find("`", self.position + 1)
                end = len(text) - 1 if end < 0 else end
                parts.append(Part("command", text[self.position + 1 : end], False))
                self.position = end + 1
            elif (char in STOP and not text.startswith(("<(", ">("), self.position)) or (char == "#" and self.position == start):
                break
            elif text.startswith(("<(", ">("), self.position):
                end = self._matching(self.position + 1, "(", ")")
                parts.append(Part("command", text[self.position + 2 : end], True))
                self.position = end + 1
            elif text.startswith("{{", self.position):
                end = text.find("}}", self.position)
                end = len(text) - 2 if end < 0 else end
                parts.append(Part("template", text[self.position : end + 2], False))
                self.position = end + 2
            else:
                end = self.position
                while end < len(text) and text[end] not in STOP + "\\'\"$`" + OPEN and not text.startswith("{{", end):
                    end += 1
                end = max(end, self.position + 1)
                parts.append(Part("text", text[self.position : end], False))
                self.position = end
        if self.position == start:
            return None
        line, column = self.place(start)
        end_line, end_column = self.place(self.position)
        return RawWord(parts, line, column, end_line, end_column)

    def _broken_continuation(self) -> bool:
        """`\\` with blanks or a comment behind it: the shell ends the command there, the author meant to go on. Read on, and note it."""
        match = _BROKEN.match(self.text, self.position)
        if match is None:
            return False
        line = self.place(self.position)[0]
        self.position = match.end()
        if self.notes and self.notes[-1].kind == "continuation" and line - self._broken_line == 1:
            self._broken_line = line
            return True
        self._broken_line = line
        what = "a comment" if "#" in match.group(0) else "blanks"
        self.notes.append(
            Note(
                self.path,
                line,
                f"{what} behind the backslash: the command ends on this line, and what follows is not part of it",
                "continuation",
            )
        )
        return True

    def _single(self) -> Part:
        end = self.text.find("'", self.position + 1)
        if end < 0:
            self.notes.append(Note(self.path, self.place(self.position)[0], "single quote without an end"))
            end = len(self.text)
        part = Part("text", self.text[self.position + 1 : end], True)
        self.position = min(end + 1, len(self.text))
        return part

    def _double(self) -> list[Part]:
        opened = self.position
        self.position += 1
        parts: list[Part] = []
        literal = ""
        while self.position < len(self.text):
            char = self.text[self.position]
            if char == '"':
                self.position += 1
                if literal or not parts:
                    parts.append(Part("text", literal, True))
                return parts
            if char == OPEN:
                end = self.text.find(CLOSE, self.position)
                end = len(self.text) - 1 if end < 0 else end
                literal += self.text[self.position : end + 1]
                self.position = end + 1
            elif char == "\\":
                following = self.text[self.position + 1 : self.position + 2]
                if following != "\n":
                    literal += following if following in '$`"\\' else "\\" + following
                self.position += 2
            elif char == "$":
                if literal:
                    parts.append(Part("text", literal, True))
                literal = ""
                parts.append(self._dollar(True))
            elif char == "`":
                end = self.text.find("`", self.position + 1)
                end = len(self.text) - 1 if end < 0 else end
                parts.append(Part("command", self.text[self.position + 1 : end], True))
                self.position = end + 1
            else:
                literal += char
                self.position += 1
        self.notes.append(Note(self.path, self.place(opened)[0], "double quote without an end"))
        parts.append(Part("text", literal, True))
        return parts

    def _dollar(self, quoted: bool) -> Part:
        text, start = self.text, self.position
        if text.startswith("${{", start):
            end = text.find("}}", start)
            end = len(text) - 2 if end < 0 else end
            self.position = end + 2
            return Part("template", text[start : self.position], quoted)
        if text.startswith("$((", start):
            end = text.find("))", start)
            end = len(text) - 2 if end < 0 else end
            self.position = end + 2
            return Part("arith", text[start + 3 : end], quoted)
        if text.startswith("$(", start):
            end = self._matching(start + 1, "(", ")")
            self.position = end + 1
            return Part("command", text[start + 2 : end], quoted)
        if text.startswith("${", start):
            end = self._matching(start + 1, "{", "}")
            self.position = end + 1
            return Part("var", text[start + 2 : end], quoted)
        end = start + 1
        if end < len(text) and text[end] in "@*#?$!-0123456789":
            end += 1
        else:
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
        self.position = end
        if end == start + 1:
            return Part("text", "$", quoted)
        return Part("var", text[start + 1 : end], quoted)

    def _matching(self, start: int, opening: str, closing: str) -> int:
        """Offset of the bracket that closes the one at `start`; quotes are skipped."""
        depth = 0
        position = start
        while position < len(self.text):
            char = self.text[position]
            if char == "\\":
                position += 1
            elif char == "'" and opening == "(":
                end = self.text.find("'", position + 1)
                position = end if end > 0 else position
            elif char == opening:
                depth += 1
            elif char == closing:
                depth -= 1
                if depth == 0:
                    return position
            position += 1
        self.notes.append(Note(self.path, self.place(start)[0], f"`{opening}` without `{closing}`"))
        return len(self.text) - 1

    def skip_blank(self) -> None:
        """Moves past blanks, continuations and comments."""
        while self.position < len(self.text):
            if self.text[self.position] in " \t\r":
                self.position += 1
            elif self.text.startswith("\\\n", self.position):
                self.position += 2
            elif self.text.startswith("\\\r\n", self.position):
                self.position += 3
            elif self.text[self.position] == "#":
                self._skip_comment()
            else:
                return

    def _skip_comment(self) -> None:
        end = self.text.find("\n", self.position)
        self.position = len(self.text) if end < 0 else end

    def span(self, word: RawWord) -> Span:
        """Where the word stands."""
        return Span(self.path, word.line, word.column, word.end_line, word.end_column)

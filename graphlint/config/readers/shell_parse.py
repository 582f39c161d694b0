"""POSIX shell and bash, as far as launch scripts use it: words with spans, assignments, arrays, compound commands, heredocs."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphlint.config.readers.shell_words import STOP, RawWord, WordReader
from graphlint.config.words import Note

_OPERATORS = ("&&", "||", ";;", "|&", ";", "|", "&", "(", ")", "\n")
_REDIRECTS = ("<<<", "<<-", "<<", ">>", "&>", ">&", "<&", ">|", ">", "<")


@dataclass
class Simple:
    """One command: assignments before it, its words, and the text of heredocs by target file."""

    assigns: list[tuple[str, bool, list[RawWord] | None, RawWord | None]] = field(default_factory=list)
    words: list[RawWord] = field(default_factory=list)
    heredoc: str | None = None
    output: RawWord | None = None


@dataclass
class Choice:
    """`if` or `case`: exactly one of the branches runs (an empty one where none may)."""

    branches: list[tuple[str, list[Node]]]
    line: int


@dataclass
class Loop:
    """`for`, `while`, `until`; functions and groups are loops that run once."""

    body: list[Node]
    name: str | None = None
    items: list[RawWord] = field(default_factory=list)


Node = Simple | Choice | Loop


class ShellParser(WordReader):
    """Parses one script into commands and compound commands."""

    def __init__(self, text: str, path: str, line: int = 1, column: int = 1) -> None:
        super().__init__(text, path, line, column)
        self._pending: list[tuple[Simple, str, bool, bool]] = []

    def parse(self) -> list[Node]:
        """All commands of the script."""
        nodes = self._block(())
        while self.position < len(self.text):
            self.position += 1  # a stray closer: go on behind it
            nodes.extend(self._block(()))
        return nodes

    def _block(self, closers: tuple[str, ...]) -> list[Node]:
        nodes: list[Node] = []
        while True:
            self._skip_separators()
            if self.position >= len(self.text):
                return nodes
            keyword = self._peek_word()
            if keyword in closers or (keyword in (")", "}", ";;") and self._at_closer(keyword)):
                return nodes
            before = self.position
            node = self._command(keyword)
            if node is not None:
                nodes.append(node)
            if self.position == before:
                if not closers and self.text[before] in ")}":
                    self.position += 1
                    continue
                return nodes

    def _at_closer(self, keyword: str) -> bool:
        return self.text.startswith(keyword, self.position)

    def _command(self, keyword: str) -> Node | None:
        line = self.place(self.position)[0]
        if keyword == "if":
            return self._if(line)
        if keyword == "case":
            return self._case(line)
        if keyword in ("for", "select"):
            return self._for()
        if keyword in ("while", "until"):
            self._take_word()
            self._block(("do",))
            return self._do(None, [])
        if keyword == "function":
            self._take_word()
            self._take_word()
            self.skip_blank()
            if self.text.startswith("()", self.position):
                self.position += 2
            return None
        if keyword in ("{", "("):
            self.position += 1
            body = self._block(("}",) if keyword == "{" else ())
            self._expect("}" if keyword == "{" else ")")
            return Loop(body)
        if keyword in ("!", "then", "do", "else", "time"):
            self._take_word()
            return None
        if keyword in ("fi", "done", "esac", "elif"):
            self._take_word()
            return None
        return self._simple()

    def _if(self, line: int) -> Choice:
        branches: list[tuple[str, list[Node]]] = []
        self._take_word()
        while True:
            start = self.position
            self._block(("then",))
            condition = " ".join(self.text[start : self.position].split()).rstrip("; ")
            if self._peek_word() == "then":
                self._take_word()
            branches.append((condition, self._block(("elif", "else", "fi"))))
            word = self._peek_word()
            if word == "elif":
                self._take_word()
                continue
            if word == "else":
                self._take_word()
                branches.append(("otherwise", self._block(("fi",))))
            else:
                branches.append(("otherwise", []))
            break
        if self._peek_word() == "fi":
            self._take_word()
        else:
            self.notes.append(Note(self.path, line, "`if` without `fi`"))
        return Choice(branches, line)

    def _case(self, line: int) -> Choice:
        self._take_word()
        self._take_word()
        self._skip_separators()
        if self._peek_word() == "in":
            self._take_word()
        branches: list[tuple[str, list[Node]]] = []
        while self.position < len(self.text):
            self._skip_separators()
            if self._peek_word() in ("esac", ""):
                break
            start = self.position
            end = self.text.find(")", start)
            if end < 0:
                break
            pattern = self.text[start:end].strip(" (")
            self.position = end + 1
            branches.append((pattern, self._block(("esac",))))
            if self.text.startswith(";;", self.position):
                self.position += 2
            elif self._peek_word() != "esac":
                break
        if self._peek_word() == "esac":
            self._take_word()
        else:
            self.notes.append(Note(self.path, line, "`case` without `esac`"))
        if not any(p == "*" for p, _ in branches):
            branches.append(("otherwise", []))
        return Choice(branches, line)

    def _for(self) -> Loop:
        self._take_word()
        name = self._take_word()
        items: list[RawWord] = []
        self.skip_blank()
        if self._peek_word() == "in":
            self._take_word()
            while True:
                self.skip_blank()
                if self.position >= len(self.text) or self.text[self.position] in ";\n":
                    break
                word = self.word()
                if word is None:
                    break
                items.append(word)
        self._skip_separators()
        return self._do(name, items)

    def _do(self, name: str | None, items: list[RawWord]) -> Loop:
        if self._peek_word() == "do":
            self._take_word()
        body = self._block(("done",))
        if self._peek_word() == "done":
            self._take_word()
        return Loop(body, name, items)

    def _simple(self) -> Simple | None:
        command = Simple()
        while True:
            self.skip_blank()
            if self.position >= len(self.text):
                break
            char = self.text[self.position]
            if char in ";|&)\n" and not self.text.startswith("&>", self.position):
                break
            if char == "(" and len(command.words) == 1 and not command.assigns:
                if self.text.startswith("()", self.position):  # a function: its body is a group that runs where it stands
                    self.position += 2
                    return None
                break
            if self._redirect(command):
                continue
            if not command.words and self._assignment(command):
                continue
            before = self.position
            word = self.word()
            if word is None:
                if self.position > before:
                    continue
                break
            if word.literal.isdigit() and self.position < len(self.text) and self.text[self.position] in "<>":
                continue
            command.words.append(word)
        return command if command.words or command.assigns or command.heredoc is not None else None

    def _assignment(self, command: Simple) -> bool:
        start = end = self.position
        while end < len(self.text) and (self.text[end].isalnum() or self.text[end] == "_"):
            end += 1
        append = self.text.startswith("+=", end)
        if end == start or self.text[start].isdigit() or not (append or self.text.startswith("=", end)):
            return False
        name = self.text[start:end]
        self.position = end + (2 if append else 1)
        if self.text.startswith("(", self.position):
            command.assigns.append((name, append, self._array(), None))
        else:
            command.assigns.append((name, append, None, self.word()))
        return True

    def _array(self) -> list[RawWord]:
        self.position += 1
        items: list[RawWord] = []
        while True:
            self._skip_separators(newline_only=True)
            if self.position >= len(self.text):
                self.notes.append(Note(self.path, self.place(self.position)[0], "array without closing parenthesis"))
                return items
            if self.text[self.position] == ")":
                self.position += 1
                return items
            word = self.word()
            if word is None:
                self.position += 1
                continue
            items.append(word)

    def _redirect(self, command: Simple) -> bool:
        for operator in _REDIRECTS:
            if self.text.startswith(operator, self.position):
                if self.text.startswith(("<(", ">("), self.position):
                    return False
                self.position += len(operator)
                self.skip_blank()
                target = self.word()
                if operator in ("<<", "<<-") and target is not None:
                    quoted = any(p.quoted for p in target.parts)
                    self._pending.append((command, target.literal, operator == "<<-", quoted))
                    command.heredoc = ""
                elif operator in (">", ">>", ">|") and target is not None:
                    command.output = target
                return True
        return False

    def _skip_separators(self, newline_only: bool = False) -> None:
        while self.position < len(self.text):
            self.skip_blank()
            if self.position >= len(self.text):
                return
            char = self.text[self.position]
            if char == "\n":
                self.position += 1
                self._heredocs()
            elif not newline_only and char in ";|&" and not self.text.startswith((";;", "&>"), self.position):
                self.position += 1
            else:
                return

    def _heredocs(self) -> None:
        for command, marker, strip, _quoted in self._pending:
            lines: list[str] = []
            while self.position < len(self.text):
                end = self.text.find("\n", self.position)
                end = len(self.text) if end < 0 else end
                line = self.text[self.position : end]
                self.position = min(end + 1, len(self.text))
                if (line.lstrip("\t") if strip else line).rstrip("\r") == marker:
                    break
                lines.append(line.lstrip("\t") if strip else line)
            command.heredoc = "\n".join(lines) + "\n"
        self._pending.clear()

    def _peek_word(self) -> str:
        self.skip_blank()
        start = end = self.position
        if start < len(self.text) and self.text[start] in "(){}":
            if self.text[start] == "{" and self.text[start + 1 : start + 2] not in (" ", "\n", "\t", "\r"):
                return "{}"
            return self.text[start]
        if self.text.startswith(";;", start):
            return ";;"
        while end < len(self.text) and self.text[end] not in STOP:
            end += 1
        return self.text[start:end]

    def _take_word(self) -> str:
        word = self._peek_word()
        self.position += len(word)
        return word

    def _expect(self, closer: str) -> None:
        self._skip_separators()
        if self.text.startswith(closer, self.position):
            self.position += 1
        else:
            self.notes.append(Note(self.path, self.place(min(self.position, len(self.text)))[0], f"missing `{closer}`"))

"""Runs a parsed script symbolically: variables, arrays and defaults are expanded, branches are explored, nothing is executed."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from graphlint.config.explore import Choices, explore
from graphlint.config.readers.shell_parse import Choice, Loop, Node, ShellParser, Simple
from graphlint.config.readers.shell_words import Part, RawWord
from graphlint.config.words import CLOSE, OPEN, Note, Span, Word, unknown

#: a branch matters when it can change a command line
_RELEVANT = re.compile(r"\w+\+?=|vllm|sglang|docker|export")
_SEQ = re.compile(r"^\s*seq((?:\s+-s\s*\S+)?)((?:\s+-?\d+){1,3})\s*$")
_MAX_PATHS = 12


class Command(NamedTuple):
    """An expanded command with the exported environment and `VAR=x` prefixes it runs under."""

    words: list[Word]
    env: dict[str, Word]
    branch: str = ""


class Script(NamedTuple):
    """All commands of a script, one list per combination of branches that matters, and its notes."""

    commands: list[Command]
    notes: list[Note]
    #: files that the script writes from heredocs or echo: name -> text
    files: dict[str, str]


def read_script(text: str, path: str, line: int = 1, column: int = 1, env: dict[str, Word] | None = None) -> Script:
    """Parses and runs a script symbolically. Never raises on malformed text; `notes` say what was wrong."""
    parser = ShellParser(text.replace("\r\n", "\n"), path, line, column)
    try:
        nodes = parser.parse()
    except RecursionError:
        return Script([], [Note(path, line, "nested too deeply to read")], {})
    commands: list[Command] = []
    files: dict[str, str] = {}
    seen: set[tuple[str, ...]] = set()

    def run(choices: Choices) -> _Run:
        state = _Run(path, dict(env or {}), choices, parser.text)
        state.block(nodes)
        return state

    for state, answers in explore(run, _MAX_PATHS):
        files.update(state.files)
        label = ", ".join(f"{a.question}: {a.label}" for a in answers)
        for command in state.commands:
            key = (str(command.words[0].span.line), *(w.text for w in command.words), *(f"{k}={v.text}" for k, v in command.env.items()))
            if key not in seen:
                seen.add(key)
                commands.append(Command(command.words, command.env, label))
    variants = Counter(c.words[0].span.line for c in commands)
    commands = [c if variants[c.words[0].span.line] > 1 else Command(c.words, c.env) for c in commands]
    return Script(commands, parser.notes, files)


class _Run:
    """The state of one pass through a script."""

    def __init__(self, path: str, env: dict[str, Word], choices: Choices, text: str) -> None:
        self.path = path
        self.env = env
        self.choices = choices
        self.text = text
        self.variables: dict[str, list[Word]] = {name: [word] for name, word in env.items()}
        self.arrays: set[str] = set()
        self.commands: list[Command] = []
        self.files: dict[str, str] = {}
        self._arguments: list[Word] | None = None

    def block(self, nodes: list[Node]) -> None:
        for node in nodes:
            if isinstance(node, Simple):
                self._simple(node)
            elif isinstance(node, Choice):
                self._choice(node)
            else:
                self._loop(node)

    def _choice(self, node: Choice) -> None:
        if not any(_mentions(branch) for _, branch in node.branches):
            return
        options = [(body, condition) for condition, body in node.branches]
        self.block(self.choices.pick(f"line {node.line}", options))

    def _loop(self, node: Loop) -> None:
        if node.name is not None:
            items = [w for item in node.items for w in self.expand(item)]
            known = len(items) == 1 and items[0].known
            span = items[0].span if items else Span(self.path, 1)
            self.variables[node.name] = [items[0] if known else Word(unknown(f"${node.name}"), span)]
        self.block(node.body)

    def _simple(self, node: Simple) -> None:
        prefix: dict[str, Word] = {}
        for name, append, array, value in node.assigns:
            if array is not None:
                words = [w for raw in array for w in self.expand(raw)]
                self.variables[name] = [*self.variables.get(name, []), *words] if append else words
                self.arrays.add(name)
                continue
            word = self._joined(value)
            if node.words:
                prefix[name] = word
            elif append:
                before = self.variables.get(name, [])
                text = before[0].text if before else ""
                self.variables[name] = [Word(text + word.text, word.span)]
            else:
                self.variables[name] = [word]
                if name in self.env:
                    self.env[name] = word
        words = [w for raw in node.words for w in self.expand(raw)]
        if node.heredoc is not None and node.output is not None:
            target = self._joined(node.output)
            self.files[target.text] = self._expand_text(node.heredoc)
        if not words:
            return
        if words[0].text in ("export", "declare", "typeset", "local", "readonly"):
            self._export(words, exported=words[0].text != "local")
        elif words[0].text == "unset":
            for word in words[1:]:
                self.env.pop(word.text, None)
                self.variables.pop(word.text, None)
        else:
            self.commands.append(Command(words, {**self.env, **prefix}))

    def _export(self, words: list[Word], exported: bool) -> None:
        for word in words[1:]:
            name, equals, value = word.text.partition("=")
            if not re.fullmatch(r"\w+", name):
                continue
            if equals:
                self.variables[name] = [Word(value, word.span)]
            if exported and words[0].text == "export" and name in self.variables and self.variables[name]:
                self.env[name] = self.variables[name][0]

    def _joined(self, raw: RawWord | None) -> Word:
        """Expansion without word splitting, as in an assignment."""
        if raw is None:
            return Word("", Span(self.path, 1))
        text = "".join(" ".join(w.text for w in self._part(p, raw)) for p in raw.parts)
        return Word(text, Span(self.path, raw.line, raw.column, raw.end_line, raw.end_column))

    def expand(self, raw: RawWord) -> list[Word]:
        """The words that one source word becomes."""
        span = Span(self.path, raw.line, raw.column, raw.end_line, raw.end_column)
        if len(raw.parts) == 1 and raw.parts[0].kind == "var":
            whole = self._whole_array(raw.parts[0])
            if whole is not None:
                return whole
        fields: list[str] = [""]
        splat = False
        present = False
        for part in raw.parts:
            pieces = self._part(part, raw)
            if part.kind == "text" or part.quoted:
                fields[-1] += " ".join(w.text for w in pieces)
                present = present or part.quoted or bool(fields[-1])
                continue
            for index, piece in enumerate(pieces):
                split = _fields(piece.text)
                if not split:
                    continue
                if index:
                    fields.append("")
                fields[-1] += split[0]
                fields.extend(split[1:])
                splat = splat or (OPEN in piece.text and len(raw.parts) == 1)
        if not present and fields == [""]:
            return []
        return [Word(f, span, splat and OPEN in f) for f in fields]

    def _whole_array(self, part: Part) -> list[Word] | None:
        """`"${args[@]}"` and `"$@"`: the elements, each where it was written."""
        match = re.fullmatch(r"(\w+)\[[@*]\]", part.text)
        if part.text in ("@", "*"):
            return [Word(unknown("$@"), Span(self.path, 1), True)] if self._arguments is None else self._arguments
        alternative = re.fullmatch(r"(\w+)(?:\[[@*]\])?:?\+(.+)", part.text, re.S)
        if alternative is not None and not part.quoted:
            return self._alternative(alternative.group(1), alternative.group(2))
        if match is None:
            return None
        name = match.group(1)
        if name not in self.variables:
            return [Word(unknown(f"${{{part.text}}}"), Span(self.path, 1), True)]
        return list(self.variables[name])

    def _alternative(self, name: str, operand: str) -> list[Word]:
        """`${args+"${args[@]}"}`: the operand's words when the variable is set, nothing otherwise."""
        if not self.variables.get(name):
            return []
        parser = ShellParser(operand, self.path)
        words: list[Word] = []
        while parser.position < len(operand):
            parser.skip_blank()
            raw = parser.word()
            if raw is None:
                break
            words += self.expand(raw)
        return words

    def _part(self, part: Part, raw: RawWord) -> list[Word]:
        span = Span(self.path, raw.line, raw.column, raw.end_line, raw.end_column)
        if part.kind == "text":
            return [Word(part.text, span)]
        if part.kind == "template":
            return [Word(unknown(part.text), span)]
        if part.kind == "arith":
            return [Word(self._arithmetic(part.text), span)]
        if part.kind == "command":
            return [Word(_substitute(part.text), span)]
        return self._variable(part.text, span, part.quoted)

    def _variable(self, text: str, span: Span, quoted: bool) -> list[Word]:
        match = re.match(r"^(!?#?\w+)(\[[^\]]*\])?(.*)$", text, re.S)
        if match is None:
            return [Word(unknown("${" + text + "}"), span)]
        name, index, rest = match.group(1), match.group(2), match.group(3)
        values = self.variables.get(name)
        if index in ("[@]", "[*]") and values is not None:
            return values
        if index is not None and values is not None and index[1:-1].isdigit() and int(index[1:-1]) < len(values):
            return [values[int(index[1:-1])]]
        operator = re.match(r"^(:?[-=+?])(.*)$", rest, re.S)
        if operator is not None:
            kind, operand = operator.group(1).lstrip(":"), self._operand(operator.group(2), quoted)
            if values is not None and values and values[0].text:
                return [Word(operand, span)] if kind == "+" else values
            if kind in "-=":
                # only the environment of the caller could override it, so the default is what runs as written
                return [Word(operand, span)]
            return [Word("" if kind == "+" else unknown(f"${{{text}}}"), span)]
        if rest or name[:1] in "!#":
            return [Word(unknown(f"${{{text}}}"), span)]
        if values is None:
            return [Word(unknown(f"${name}" if not index else f"${{{text}}}"), span)]
        return values[:1] if name in self.arrays else values

    def _operand(self, text: str, quoted: bool) -> str:
        """The word behind `:-` and the like: quotes in it are removed; inside double quotes only double ones are."""
        if quoted:
            return self._expand_text(re.sub(r'(?<!\\)"', "", text), escape=False)
        parser = ShellParser(text, self.path)
        words = []
        while parser.position < len(text):
            parser.skip_blank()
            raw = parser.word()
            if raw is None:
                break
            words.append(self._joined(raw).text)
        return " ".join(words) if words or not text.strip() else text

    def _expand_text(self, text: str, escape: bool = True) -> str:
        parser = ShellParser('"' + (text.replace('"', '\\"') if escape else text) + '"', self.path)
        word = parser.word()
        return self._joined(word).text if word is not None else text

    def _arithmetic(self, text: str) -> str:
        expression = re.sub(r"\$?\{?\b([A-Za-z_]\w*)\b\}?", lambda m: self._number(m.group(1)), text)
        if re.fullmatch(r"[\d\s+*/%()-]+", expression):
            try:
                return str(int(eval(expression.replace("/", "//"), {"__builtins__": {}})))  # noqa: S307 - digits and operators only
            except (SyntaxError, ZeroDivisionError, ValueError):
                pass
        return unknown(f"$(({text}))")

    def _number(self, name: str) -> str:
        values = self.variables.get(name)
        return values[0].text if values and values[0].text.isdigit() else name


def _mentions(nodes: list[Node]) -> bool:
    for node in nodes:
        if isinstance(node, Simple):
            if node.assigns or any(_RELEVANT.search(w.literal) for w in node.words):
                return True
        elif isinstance(node, Choice):
            if any(_mentions(body) for _, body in node.branches):
                return True
        elif _mentions(node.body):
            return True
    return False


def _substitute(command: str) -> str:
    match = _SEQ.match(command)
    if match:
        numbers = [int(n) for n in match.group(2).split()]
        first, step, last = (1, 1, numbers[0]) if len(numbers) == 1 else (numbers[0], 1, numbers[-1])
        if len(numbers) == 3:
            step = numbers[1]
        if step and abs((last - first) // step) < 5000:
            separator = re.sub(r"^\s*-s\s*", "", match.group(1)).strip("'\"") or " "
            return separator.join(str(n) for n in range(first, last + (1 if step > 0 else -1), step))
    return unknown(f"$({command})")


def _fields(text: str) -> list[str]:
    """Word splitting that leaves symbolic parts whole."""
    out: list[str] = []
    current = ""
    depth = 0
    for char in text:
        depth += (char == OPEN) - (char == CLOSE)
        if char in " \t\n" and depth == 0:
            if current:
                out.append(current)
            current = ""
        else:
            current += char
    return [*out, current] if current else out

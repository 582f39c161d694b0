"""Python: `LLM(...)`, `EngineArgs(...)` and kin, dict literals passed to them, command lists and command strings. Nothing is executed."""

from __future__ import annotations

import ast
import re
from typing import Any

from graphlint.config.deployment import Deployment
from graphlint.config.json_values import Symbol
from graphlint.config.readers import Read
from graphlint.config.readers.launch import entry_at, script_deployments
from graphlint.config.words import Note, Span, Word, unknown

_CALLS = {"LLM", "EngineArgs", "AsyncEngineArgs"}
_RUNNERS = {
    "run",
    "Popen",
    "call",
    "check_call",
    "check_output",
    "system",
    "popen",
    "getoutput",
    "execute",
    "exec_command",
    "sendline",
    "split",
}
_COMMAND_NAME = re.compile(r"cmd|command|launch|script|serve", re.I)


def read_python(text: str, path: str) -> Read:
    """Deployments that the file's literals describe."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        return Read([], [Note(path, line, f"not valid Python: {getattr(error, 'msg', error)}", "malformed")])
    reader = _Reader(path, "vllm" in text, "sglang" in text)
    reader.visit(tree)
    return Read(reader.found, [])


class _Reader(ast.NodeVisitor):
    def __init__(self, path: str, vllm: bool, sglang: bool) -> None:
        self.path = path
        self.vllm = vllm
        self.sglang = sglang
        self.found: list[Deployment] = []
        self.literals: dict[str, ast.expr] = {}
        self._env: dict[str, Word] = {}

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.literals[target.id] = node.value
                if _COMMAND_NAME.search(target.id):
                    self._string(node.value)
            elif isinstance(target, ast.Subscript) and ast.unparse(target.value).endswith("environ"):
                key = self._value(target.slice)
                if isinstance(key, str):
                    self._env[key] = Word(str(self._text(node.value)), self._span(node))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _CALLS and self.vllm and (node.keywords or node.args):
            self._arguments(node, name)
        elif name in _RUNNERS:
            for argument in node.args[:1]:
                self._string(argument)
        if name in ("Engine", "ServerArgs") and self.sglang and node.keywords:
            self._sglang(node)
        self.generic_visit(node)

    def visit_List(self, node: ast.List) -> None:
        words = [Word(self._text(e), self._span(e)) for e in node.elts if not isinstance(e, ast.Starred)]
        for index in range(min(len(words), 5)):
            started = entry_at(words, index)
            if started is not None:
                engine, entry, rest = started
                if len(words) != len(node.elts):
                    words.append(Word(unknown("*..."), self._span(node), True))
                self.found.append(Deployment(engine, words[index].span, words[rest:], dict(self._env), entry=entry))
                return
        self.generic_visit(node)

    def _string(self, node: ast.expr) -> None:
        """A string that is run or kept as a command; prose and messages are left alone."""
        if not isinstance(node, (ast.Constant, ast.JoinedStr)):
            return
        text = self._text(node)
        if "vllm serve " not in text and "sglang.launch_server" not in text:
            return
        found, _ = script_deployments(text, self.path, node.lineno, node.col_offset + 1, dict(self._env))
        self.found += [d for d in found if d.args]

    def _arguments(self, node: ast.Call, name: str) -> None:
        entries: list[tuple[str, Any, Span]] = []
        notes: list[Note] = []
        if node.args and name == "LLM" and not isinstance(node.args[0], ast.Starred):
            entries.append(("model", self._value(node.args[0]), self._span(node.args[0])))
        for keyword in node.keywords:
            span = self._span(keyword.value)
            if keyword.arg is not None:
                entries.append(
                    (
                        keyword.arg,
                        self._value(keyword.value),
                        Span(self.path, keyword.lineno, keyword.col_offset + 1, span.end_line, span.end_column),
                    )
                )
                continue
            expanded = self._value(keyword.value)
            if isinstance(expanded, dict):
                entries += [(str(k), v, span) for k, v in expanded.items() if not isinstance(k, Symbol)]
            else:
                notes.append(Note(self.path, keyword.value.lineno, f"**{ast.unparse(keyword.value)} may set anything"))
        deployment = Deployment("vllm", self._span(node), [], dict(self._env), name="", entry="api")
        deployment.inline = entries
        deployment.notes = notes
        self.found.append(deployment)

    def _sglang(self, node: ast.Call) -> None:
        words: list[Word] = []
        for keyword in node.keywords:
            if keyword.arg is None:
                continue
            value = self._value(keyword.value)
            span = self._span(keyword.value)
            option = "--" + keyword.arg.replace("_", "-")
            if value is True:
                words.append(Word(option, span))
            elif value is not False and value is not None:
                words += [Word(option, span), Word(value.text if isinstance(value, Symbol) else str(value), span)]
        self.found.append(Deployment("sglang", self._span(node), words, dict(self._env), entry="api"))

    def _value(self, node: ast.expr, depth: int = 4) -> Any:
        """A literal's value; names that are assigned once to a literal are followed, everything else is symbolic."""
        if isinstance(node, ast.Constant):
            plain = node.value is None or isinstance(node.value, (bool, int, float, str))
            return node.value if plain else Symbol(unknown(ast.unparse(node)))  # `...`, bytes, complex numbers
        if isinstance(node, ast.Dict):
            out: dict[Any, Any] = {}
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None:
                    inner = self._value(value, depth - 1) if depth else None
                    out.update(inner if isinstance(inner, dict) else {})
                else:
                    out[self._value(key, depth)] = self._value(value, depth)
            return out
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._value(e, depth) for e in node.elts]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return -node.operand.value if isinstance(node.operand.value, (int, float)) else Symbol(unknown(ast.unparse(node)))
        if isinstance(node, ast.Name) and depth and node.id in self.literals:
            return self._value(self.literals[node.id], depth - 1)
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value).rsplit(".", 1)[-1]
            if owner in ("CUDAGraphMode", "CompilationMode", "CompilationLevel", "AttentionBackendEnum"):
                return node.attr
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).rsplit(".", 1)[-1]
            if (
                called in ("CompilationConfig", "PassConfig", "AttentionConfig", "dict", "SpeculativeConfig", "KVTransferConfig")
                and not node.args
            ):
                return {k.arg: self._value(k.value, depth) for k in node.keywords if k.arg is not None}
            if (
                called == "list"
                and len(node.args) == 1
                and isinstance(node.args[0], ast.Call)
                and ast.unparse(node.args[0].func) == "range"
            ):
                bounds = [self._value(a) for a in node.args[0].args]
                if all(isinstance(b, int) for b in bounds) and 1 <= len(bounds) <= 3:
                    return list(range(*bounds))[:5000]
            if called == "dumps" and node.args:
                return self._value(node.args[0], depth)
        return Symbol(unknown(ast.unparse(node)))

    def _text(self, node: ast.expr) -> str:
        if isinstance(node, ast.JoinedStr):
            return "".join(str(v.value) if isinstance(v, ast.Constant) else unknown(ast.unparse(v).strip("f'\"")) for v in node.values)
        value = self._value(node)
        if isinstance(value, Symbol):
            return value.text
        if isinstance(value, (dict, list)):
            import json

            return json.dumps(value, default=lambda s: s.text)
        return str(value)

    def _span(self, node: ast.expr | ast.stmt) -> Span:
        return Span(
            self.path, node.lineno, node.col_offset + 1, node.end_lineno or node.lineno, (node.end_col_offset or node.col_offset) + 1
        )

"""The server: what happens when a document is opened, changed, hovered, or asks for code actions."""

from __future__ import annotations

import asyncio
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from graphlint import __version__
from graphlint.baseline.file import BaselineError
from graphlint.changes import ChangesError
from graphlint.finding import Finding
from graphlint.lsp.convert import SOURCE, Converter, overlaps, path_of, uri_of
from graphlint.lsp.session import Session
from graphlint.registry import PackError, UnknownRule
from graphlint.settings import ConfigError

#: seconds without a change before the documents are analysed
PAUSE = 0.3
_log = logging.getLogger(__name__)


class GraphlintServer(LanguageServer):
    """One client's server. Analyses run in one thread, so that typing is never held up; only the last of several waiting ones runs."""

    def __init__(self) -> None:
        super().__init__("graphlint", __version__)
        self.session = Session(Path.cwd())
        self._worker = ThreadPoolExecutor(1, "graphlint")
        self._asked = 0
        self._shown: set[str] = set()
        self._said = ""

    def documents(self) -> dict[str, str]:
        """Open Python files: absolute path -> text."""
        found = ((path_of(uri), document) for uri, document in self.workspace.text_documents.items())
        return {path: document.source for path, document in found if path is not None}

    def converter(self) -> Converter:
        """Ranges in this client's units, over the text that the last analysis saw."""
        open_documents = {os.path.abspath(path): text.split("\n") for path, text in self.documents().items()}
        outcome = self.session.outcome

        def lines(path: str) -> list[str]:
            known = open_documents.get(os.path.abspath(path))
            if known is not None:
                return known
            return outcome.sources.lines(path) if outcome is not None else []

        return Converter(self.workspace.position_codec, lines)

    async def analyse(self, pause: float = PAUSE) -> None:
        """Check the open documents once nothing has changed for `pause` seconds, and publish what was found."""
        self._asked += 1
        mine = self._asked
        await asyncio.sleep(pause)
        if mine != self._asked:
            return
        documents = self.documents()
        if not documents:
            self._publish({})
            return
        try:
            outcome = await asyncio.get_running_loop().run_in_executor(self._worker, self.session.check, documents)
        except (BaselineError, ChangesError, ConfigError, PackError, UnknownRule) as error:
            self._say(str(error))
            return
        except Exception:  # noqa: BLE001  the server must go on
            _log.exception("the analysis failed")
            return
        if mine != self._asked:
            return  # the text has changed meanwhile: positions would be wrong, and a newer analysis is on its way
        self._said = ""
        problems = outcome.report.errors
        for problem in problems:
            message = f"{problem.path}:{problem.line}: {problem.message}"
            self.window_log_message(types.LogMessageParams(types.MessageType.Warning, message))
        broken = {os.path.abspath(problem.path) for problem in problems if problem.path}
        found: dict[str, list[Finding]] = {path: [] for path in documents if path not in broken}
        for finding in outcome.report.findings:
            found.setdefault(os.path.abspath(finding.path), []).append(finding)
        self._publish(found)

    def _publish(self, found: dict[str, list[Finding]]) -> None:
        """Publish the findings by file; a file that is open no more is cleared, one that does not parse keeps what it shows."""
        converter = self.converter()
        open_paths = set(self.documents())
        for path in self._shown - open_paths:
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri_of(path), []))
        self._shown &= open_paths
        for path, findings in found.items():
            if path in open_paths:
                self._shown.add(path)
                diagnostics = [converter.diagnostic(finding) for finding in findings]
                self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri_of(path), diagnostics))

    def _say(self, message: str) -> None:
        """Tell the user what is wrong with the configuration: once, not at each key."""
        if message != self._said:
            self._said = message
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"graphlint: {message}"))

    async def hover_text(self, uri: str, position: types.Position) -> str:
        """Markdown on what is at a position: findings with their rule's page, then what the engine believes."""
        path = path_of(uri)
        if path is None:
            return ""
        document = self.workspace.get_text_document(uri)
        converter, here = self.converter(), types.Range(position, position)
        parts = []
        for finding in self.session.findings(path):
            if overlaps(converter.diagnostic(finding).range, here):
                parts.append(f"**{finding.severity} {finding.rule}** {finding.message}\n\n---\n\n{self.session.rule_page(finding.rule)}")
        word = document.word_at_position(position)
        loop = asyncio.get_running_loop()
        try:
            beliefs = await loop.run_in_executor(self._worker, self.session.beliefs, path, document.source, position.line + 1, word)
        except Exception:  # noqa: BLE001  the findings are still worth showing
            _log.exception("hover failed")
            beliefs = ""
        return "\n\n---\n\n".join(part for part in (beliefs, *parts) if part)


def create() -> GraphlintServer:
    """A server with its features."""
    server = GraphlintServer()

    @server.feature(types.INITIALIZED)
    def initialized(_: types.InitializedParams) -> None:
        folders = list(server.workspace.folders.values())
        root = to_fs_path(folders[0].uri) if folders else server.workspace.root_path
        if root:
            server.session.root = Path(root)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(_: types.DidOpenTextDocumentParams) -> None:
        await server.analyse(0.0)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(_: types.DidChangeTextDocumentParams) -> None:
        await server.analyse()

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(_: types.DidSaveTextDocumentParams) -> None:
        await server.analyse(0.0)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(_: types.DidCloseTextDocumentParams) -> None:
        await server.analyse(0.0)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        text = await server.hover_text(params.text_document.uri, params.position)
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text else None

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix]))
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        path = path_of(params.text_document.uri)
        if path is None:
            return []
        converter = server.converter()
        actions = []
        for finding in server.session.findings(path):
            diagnostic = converter.diagnostic(finding)
            if overlaps(diagnostic.range, params.range):
                actions += _actions(finding, diagnostic, converter)
        return actions

    return server


def _actions(finding: Finding, diagnostic: types.Diagnostic, converter: Converter) -> list[types.CodeAction]:
    """The fix of a finding, and the comment that silences it."""
    actions = []
    fix = finding.fix
    if fix is not None and fix.edits and fix.applicability != "display":
        title = f"{SOURCE}: {fix.title}" + ("" if fix.applicability == "safe" else " (unsafe)")
        actions.append(types.CodeAction(
            title, types.CodeActionKind.QuickFix, [diagnostic], is_preferred=fix.applicability == "safe", edit=converter.edits(fix.edits),
        ))
    actions.append(types.CodeAction(
        f"{SOURCE}: ignore {finding.rule} here", types.CodeActionKind.QuickFix, [diagnostic], edit=converter.suppression(finding),
    ))
    return actions

"""The language server, spoken to by a real client."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("pygls")
pytest_lsp = pytest.importorskip("pytest_lsp")

from lsprotocol import types  # noqa: E402

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/cli"))
from engine import DRAFTER, FILES, FILLED  # noqa: E402

SERVER = pytest_lsp.ClientServerConfig(
    server_command=[sys.executable, "-m", "graphlint", "lsp"], server_env={**os.environ, "PYTHONPATH": str(ROOT)},
)
#: the statement that GL301 flags, 0-based line
LINE = 15


@pytest_lsp.fixture(config=SERVER)
async def client(lsp_client: pytest_lsp.LanguageClient, tmp_path):
    for name, text in {**FILES, "engine/drafter.py": FILLED}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    folder = types.WorkspaceFolder(tmp_path.as_uri(), "work")
    await lsp_client.initialize_session(types.InitializeParams(
        capabilities=pytest_lsp.client_capabilities("visual-studio-code"), workspace_folders=[folder], root_uri=tmp_path.as_uri(),
    ))
    yield
    await lsp_client.shutdown_session()


def uri_of(tmp_path, name="engine/drafter.py"):
    return (tmp_path / name).as_uri()


def open_document(client, uri, text):
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, text)))


def type_text(client, uri, text, version=2):
    client.text_document_did_change(types.DidChangeTextDocumentParams(
        types.VersionedTextDocumentIdentifier(version, uri), [types.TextDocumentContentChangeWholeDocument(text)],
    ))


async def published(client, uri, wanted):
    """The diagnostics of a document, once there are `wanted` of them."""
    for _ in range(200):
        found = client.diagnostics.get(uri)
        if found is not None and len(found) == wanted:
            return list(found)
        await asyncio.sleep(0.05)
    raise AssertionError(f"{client.diagnostics.get(uri)} instead of {wanted} diagnostics")


@pytest.mark.asyncio
async def test_findings_appear_and_go_while_typing(client, tmp_path):
    uri = uri_of(tmp_path)
    open_document(client, uri, FILLED)
    assert await published(client, uri, 0) == []
    type_text(client, uri, DRAFTER)
    (one,) = await published(client, uri, 1)
    assert (one.code, one.severity, one.source) == ("GL301", types.DiagnosticSeverity.Error, "graphlint")
    assert one.range == types.Range(types.Position(LINE, 8), types.Position(LINE, 54))
    assert [info.message[:2] for info in one.related_information] == ["1.", "2.", "3."]
    reader = one.related_information[2].location
    assert (reader.uri, reader.range.start) == (uri_of(tmp_path, "engine/forward.py"), types.Position(5, 15))
    type_text(client, uri, "def broken(:\n", 3)
    await asyncio.sleep(1)
    assert len(client.diagnostics[uri]) == 1, "a text that does not parse keeps what is shown"
    type_text(client, uri, FILLED, 4)
    await published(client, uri, 0)


@pytest.mark.asyncio
async def test_closing_a_document_clears_it(client, tmp_path):
    uri = uri_of(tmp_path)
    open_document(client, uri, DRAFTER)
    await published(client, uri, 1)
    client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
    await published(client, uri, 0)


@pytest.mark.asyncio
async def test_columns_are_counted_in_the_units_of_the_client(client, tmp_path):
    uri = uri_of(tmp_path)
    open_document(client, uri, DRAFTER.replace("copy_(idx_mapping)", 'copy_(idx_mapping["😋"])'))
    (one,) = await published(client, uri, 1)
    assert one.range.end.character == 54 + len('["xx"]')  # a character beyond the basic plane is two units of UTF-16


@pytest.mark.asyncio
async def test_hover_tells_the_extent_the_buffer_and_the_rule(client, tmp_path):
    uri = uri_of(tmp_path)
    open_document(client, uri, DRAFTER)
    await published(client, uri, 1)

    async def hover(line, character):
        where = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, character))
        found = await client.text_document_hover_async(where)
        return found.contents.value if found else ""

    text = await hover(LINE, DRAFTER.split("\n")[LINE].index("num_reqs") + 2)
    assert "`num_reqs`: **live requests**" in text
    assert "buffer `idx_mapping`: gather index, room for capacity requests, kept between steps" in text
    assert "## Why it fails under graphs" in text
    assert await hover(0, 0) == ""


@pytest.mark.asyncio
async def test_a_code_action_writes_the_comment_that_silences_the_finding(client, tmp_path):
    uri = uri_of(tmp_path)
    open_document(client, uri, DRAFTER)
    (one,) = await published(client, uri, 1)
    actions = await client.text_document_code_action_async(types.CodeActionParams(
        types.TextDocumentIdentifier(uri), one.range, types.CodeActionContext([one]),
    ))
    action = next(action for action in actions if action.title == "graphlint: ignore GL301 here")
    (edit,) = action.edit.changes[uri]
    lines = DRAFTER.split("\n")
    assert edit.range == types.Range(types.Position(LINE, 0), types.Position(LINE, 0))
    lines.insert(LINE, edit.new_text.rstrip("\n"))
    type_text(client, uri, "\n".join(lines))
    await published(client, uri, 0)


@pytest.mark.asyncio
async def test_a_code_action_applies_the_fix(client, tmp_path):
    uri = uri_of(tmp_path)
    open_document(client, uri, DRAFTER)
    (one,) = await published(client, uri, 1)
    actions = await client.text_document_code_action_async(types.CodeActionParams(
        types.TextDocumentIdentifier(uri), one.range, types.CodeActionContext([one]),
    ))
    action = next(action for action in actions if "Fill the tail of `self.idx_mapping`" in action.title)
    assert action.title.endswith("(unsafe)")
    assert not action.is_preferred
    (edit,) = action.edit.changes[uri]
    assert edit.range.start == edit.range.end == types.Position(LINE + 1, 0)
    lines = DRAFTER.split("\n")
    lines.insert(LINE + 1, edit.new_text.rstrip("\n"))
    type_text(client, uri, "\n".join(lines))
    await published(client, uri, 0)


@pytest.mark.asyncio
async def test_a_mistake_in_the_configuration_is_said_once(client, tmp_path):
    (tmp_path / "graphlint.toml").write_text("selct = []\n")
    uri = uri_of(tmp_path)
    open_document(client, uri, DRAFTER)
    for _ in range(100):
        if client.messages:
            break
        await asyncio.sleep(0.05)
    type_text(client, uri, DRAFTER + "\n")
    await asyncio.sleep(1)
    assert [message.message for message in client.messages] == [
        f"graphlint: {os.path.relpath(tmp_path / 'graphlint.toml')}: unknown key selct; did you mean select?",
    ]

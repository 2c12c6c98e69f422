"""A session of an editor with `omnigraph lsp`, over stdin and stdout, with the client of pygls."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

import omnigraph as og
from support.language_server import session_answer

SCHEMA = """node Person {
    name: String @key
    age: I32?
}

edge Knows: Person -> Person { since: Date? }
"""
QUERIES = """query friends($name: String) {
    match {
        $p: Person { name: $name }
        $p knows $q
    }
    return { $q.name, "😀", $q.age }
}

query all() { match { $p: Person } return { $p.name } order { $p.name } }
"""
WRONG = 'query w() { match { $p: Person } return { "😀", $p.nam } }\n'


def test_the_end_of_a_session_is_no_error(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; from omnigraph.cli.entry import main; sys.exit(main())", "lsp"]
    assert "hoverProvider" in session_answer(command, tmp_path)["capabilities"]


class Editor:
    """A client with one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client = LanguageClient("test", "1")
        self.published: dict[str, list[lsp.Diagnostic]] = {}
        self.messages: list[str] = []
        self.arrived = asyncio.Event()

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def diagnostics(params: lsp.PublishDiagnosticsParams) -> None:
            self.published[params.uri] = list(params.diagnostics)
            self.arrived.set()

        @self.client.feature(lsp.WINDOW_SHOW_MESSAGE)
        def message(params: lsp.ShowMessageParams) -> None:
            self.messages.append(params.message)

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def at(self, name: str, line: int, column: int) -> dict[str, Any]:
        return {"text_document": lsp.TextDocumentIdentifier(self.uri(name)), "position": lsp.Position(line, column)}

    async def next_diagnostics(self, name: str) -> list[lsp.Diagnostic]:
        await asyncio.wait_for(self.arrived.wait(), 60)
        self.arrived.clear()
        return self.published[self.uri(name)]

    async def show(self, name: str) -> list[lsp.Diagnostic]:
        text = (self.folder / name).read_text(encoding="utf-8")
        item = lsp.TextDocumentItem(self.uri(name), name[-2:], 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return await self.next_diagnostics(name)

    async def edit(self, name: str, change: Any) -> list[lsp.Diagnostic]:
        document = lsp.VersionedTextDocumentIdentifier(2, self.uri(name))
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))
        return await self.next_diagnostics(name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.pg").write_text(SCHEMA, encoding="utf-8")
    (tmp_path / "q.gq").write_text(QUERIES, encoding="utf-8")
    (tmp_path / "w.gq").write_text(WRONG, encoding="utf-8")
    return tmp_path


def session(folder: Path, body: Any) -> None:
    async def run() -> None:
        editor = Editor(folder)
        client = editor.client
        await client.start_io(sys.executable, "-m", "omnigraph", "lsp", cwd=str(folder))
        try:
            params = lsp.InitializeParams(lsp.ClientCapabilities(), root_uri=folder.as_uri())
            started = await asyncio.wait_for(client.initialize_async(params), 60)
            assert started.capabilities.completion_provider is not None
            client.initialized(lsp.InitializedParams())
            await body(editor, client)
            await client.shutdown_async(None)
            client.exit(None)
        except BaseException:
            client._server.kill()  # otherwise `stop` waits for its end
            raise
        finally:
            await client.stop()

    asyncio.run(run())


def test_session(folder: Path) -> None:
    async def body(editor: Editor, client: Any) -> None:
        assert await editor.show("s.pg") == []
        assert await editor.show("q.gq") == []
        found = await editor.show("w.gq")
        # The emoji has two code units.
        assert [(each.code, each.range) for each in found] == [
            ("T6", lsp.Range(lsp.Position(0, 51), lsp.Position(0, 54)))
        ]
        assert "did you mean 'name'?" in found[0].message
        actions = await client.text_document_code_action_async(
            lsp.CodeActionParams(
                lsp.TextDocumentIdentifier(editor.uri("w.gq")), found[0].range, lsp.CodeActionContext(found)
            )
        )
        assert [each.title for each in actions] == ["Replace by 'name'"]
        edit = actions[0].edit.changes[editor.uri("w.gq")][0]
        change = lsp.TextDocumentContentChangePartial(edit.range, edit.new_text)
        assert await editor.edit("w.gq", change) == []

        completed = await client.text_document_completion_async(lsp.CompletionParams(**editor.at("q.gq", 5, 31)))
        assert [each.label for each in completed.items] == ["age", "name"]
        hovered = await client.text_document_hover_async(lsp.HoverParams(**editor.at("q.gq", 2, 13)))
        assert "node Person" in hovered.contents.value
        place = await client.text_document_definition_async(lsp.DefinitionParams(**editor.at("q.gq", 2, 13)))
        assert (place.uri, place.range.start) == (editor.uri("s.pg"), lsp.Position(0, 5))
        edge = await client.text_document_definition_async(lsp.DefinitionParams(**editor.at("q.gq", 3, 13)))
        assert (edge.uri, edge.range.start) == (editor.uri("s.pg"), lsp.Position(5, 5))
        parameter = await client.text_document_definition_async(lsp.DefinitionParams(**editor.at("q.gq", 2, 28)))
        assert (parameter.uri, parameter.range.start) == (editor.uri("q.gq"), lsp.Position(0, 14))
        used = await client.text_document_references_async(
            lsp.ReferenceParams(lsp.ReferenceContext(include_declaration=True), **editor.at("s.pg", 0, 6))
        )
        assert {(each.uri.rpartition("/")[2], each.range.start.line) for each in used} == {
            ("s.pg", 0), ("s.pg", 5), ("q.gq", 2), ("q.gq", 8), ("w.gq", 0)
        }  # fmt: skip

        renamed = await client.text_document_rename_async(lsp.RenameParams(new_name="who", **editor.at("q.gq", 2, 9)))
        edits = renamed.changes[editor.uri("q.gq")]
        assert [(each.range.start.line, each.new_text) for each in edits] == [(2, "$who"), (3, "$who")]
        renamed = await client.text_document_rename_async(lsp.RenameParams(new_name="Human", **editor.at("s.pg", 0, 6)))
        texts = [each.new_text for each in renamed.changes[editor.uri("s.pg")]]
        assert sorted(texts) == [' @rename_from("Person")', "Human", "Human", "Human"]
        assert [each.new_text for each in renamed.changes[editor.uri("q.gq")]] == ["Human", "Human"]
        renamed = await client.text_document_rename_async(lsp.RenameParams(new_name="Met", **editor.at("q.gq", 3, 13)))
        assert [each.new_text for each in renamed.changes[editor.uri("q.gq")]] == ["met"]
        assert await client.text_document_rename_async(
            lsp.RenameParams(new_name="Upper", **editor.at("q.gq", 2, 9))
        ) is None  # fmt: skip
        assert "begins with a lower-case letter" in editor.messages[-1]

        identifier = lsp.TextDocumentIdentifier(editor.uri("s.pg"))
        options = lsp.FormattingOptions(4, insert_spaces=True)
        formatted = await client.text_document_formatting_async(lsp.DocumentFormattingParams(identifier, options))
        assert len(formatted) == 1
        assert "edge Knows: Person -> Person {\n    since: Date?\n}" in formatted[0].new_text
        listed = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(identifier))
        assert [(each.name, [child.name for child in each.children]) for each in listed] == [
            ("Person", ["name", "age"]),
            ("Knows", ["since"]),
        ]
        lenses = await client.text_document_code_lens_async(
            lsp.CodeLensParams(lsp.TextDocumentIdentifier(editor.uri("q.gq")))
        )
        assert not lenses, "no graph is configured"

    session(folder, body)


def test_queries_run_on_the_configured_graph(folder: Path) -> None:
    graph = og.init(folder / "g.omni", SCHEMA.replace("age", "years"), sync=False, environ={})
    graph.load([{"type": "Person", "data": {"name": "Ana"}}], mode="append")
    (folder / "omnigraph.yaml").write_text("graphs:\n  main:\n    uri: g.omni\n")

    async def body(editor: Editor, client: Any) -> None:
        assert [each.code for each in await editor.show("q.gq")] == ["T6"], "the schema is that of the graph"
        lenses = await client.text_document_code_lens_async(
            lsp.CodeLensParams(lsp.TextDocumentIdentifier(editor.uri("q.gq")))
        )
        commands = [(each.command.title, each.command.arguments[1]) for each in lenses]
        assert commands == [("Explain", "friends"), ("Run", "all"), ("Explain", "all")]
        for lens, text in ((lenses[1], "Ana"), (lenses[2], "Person")):
            run = lsp.ExecuteCommandParams(lens.command.command, arguments=lens.command.arguments)
            assert text in await client.workspace_execute_command_async(run)
        wrong = lsp.ExecuteCommandParams(lenses[1].command.command, arguments=[editor.uri("q.gq"), "missing"])
        assert await client.workspace_execute_command_async(wrong) is None
        assert "missing" in editor.messages[-1]

    session(folder, body)

"""The language server over stdin and stdout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from omnigraph.errors import OmniGraphError
from omnigraph.lsp import answers
from omnigraph.lsp.documents import Document, Documents
from omnigraph.version import __version__


class _Server(LanguageServer):
    """The server of one editor, with the open texts."""

    def __init__(self) -> None:
        super().__init__("omnigraph", __version__)
        self.documents = Documents()

    def document(self, uri: str) -> Document:
        """Return the document of a URI as it is shown."""
        path = _path(uri)
        self.documents.open[path] = self.workspace.get_text_document(uri).source
        return self.documents.get(path)

    def publish(self, uri: str) -> None:
        """Send the diagnostics of a document; after a change of a schema, also those of its open queries."""
        document = self.document(uri)
        changed = [document]
        if document.language == "pg":
            changed += (each for each in self.documents.related(document.path) if each.path in self.documents.open)
        for each in changed:
            params = lsp.PublishDiagnosticsParams(each.path.as_uri(), answers.diagnostics(each))
            self.text_document_publish_diagnostics(params)

    def show_error(self, error: OmniGraphError) -> None:
        """Show an error and its hint."""
        text = str(error) if error.hint is None else f"{error}; {error.hint}"
        self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, text))


def _path(uri: str) -> Path:
    return Path(to_fs_path(uri) or uri)


def build_server() -> LanguageServer:
    """Return the server with its features."""
    server = _Server()

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.documents.open.pop(_path(params.text_document.uri), None)
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["$", ".", "@", ":"]))
    def completion(params: lsp.CompletionParams) -> lsp.CompletionList:
        document = server.document(params.text_document.uri)
        return answers.completion(document, answers.offset_of(document, params.position))

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        document = server.document(params.text_document.uri)
        return answers.hover(document, answers.offset_of(document, params.position))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        document = server.document(params.text_document.uri)
        return answers.definition(server.documents, document, answers.offset_of(document, params.position))

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        document = server.document(params.text_document.uri)
        at, declaration = answers.offset_of(document, params.position), params.context.include_declaration
        return answers.references(server.documents, document, at, declaration=declaration)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME)
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        document = server.document(params.text_document.uri)
        at = answers.offset_of(document, params.position)
        try:
            return answers.rename(server.documents, document, at, params.new_name)
        except OmniGraphError as error:
            server.show_error(error)
            return None

    _add_text_features(server)
    _add_commands(server)
    return server


def _add_text_features(server: _Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        return answers.formatting(server.document(params.text_document.uri))

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        return answers.symbols(server.document(params.text_document.uri))

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix])
    )
    def actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document = server.document(params.text_document.uri)
        return answers.code_actions(document, list(params.context.diagnostics))

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    def lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        return answers.code_lenses(server.document(params.text_document.uri))


def _add_commands(server: _Server) -> None:
    def execute(command: str, uri: str, name: str) -> str | None:
        try:
            return answers.execute(server.document(uri), command, name)
        except OmniGraphError as error:
            server.show_error(error)
            return None

    @server.command(answers.RUN)
    def run(uri: str, name: str) -> Any:
        return execute(answers.RUN, uri, name)

    @server.command(answers.EXPLAIN)
    def explain(uri: str, name: str) -> Any:
        return execute(answers.EXPLAIN, uri, name)


def serve() -> None:
    """Serve an editor until it ends the session."""
    build_server().start_io()

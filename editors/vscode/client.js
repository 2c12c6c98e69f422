// The client of `omnigraph lsp`.
const { window, workspace } = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

const COMMANDS = ["omnigraph.run", "omnigraph.explain"];

/** @type {LanguageClient | undefined} */
let client;

function serverOptions() {
  const command = workspace.getConfiguration("omnigraph").get("command", "omnigraph");
  return { command, args: ["lsp"], transport: TransportKind.stdio };
}

/** Show the rows or the plan of a query beside its text. */
async function showText(text) {
  const document = await workspace.openTextDocument({ content: text, language: "plaintext" });
  await window.showTextDocument(document, { preview: true, viewColumn: 2, preserveFocus: true });
}

const middleware = {
  async executeCommand(command, args, next) {
    const result = await next(command, args);
    if (COMMANDS.includes(command) && typeof result === "string") {
      await showText(result);
    }
    return result;
  },
};

async function activate() {
  client = new LanguageClient("omnigraph", "OmniGraph", serverOptions(), {
    documentSelector: [
      { scheme: "file", language: "pg" },
      { scheme: "file", language: "gq" },
    ],
    synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.{pg,gq}") },
    middleware,
  });
  try {
    await client.start();
  } catch (error) {
    const hint = "Install it with: pip install 'omnigraph[lsp]'";
    window.showErrorMessage(`The language server of OmniGraph did not start: ${error}. ${hint}`);
  }
}

async function deactivate() {
  await client?.stop();
}

module.exports = { activate, deactivate };

"""Configuration files of MCP clients, and the entry that makes a client start `omnigraph mcp`.

A file is JSON with an object of named servers. The entry is added or replaced; everything else is kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

from omnigraph.errors import InputError, NotFound
from omnigraph.suggestions import did_you_mean, listing

Entry = dict[str, Any]


@dataclass(frozen=True)
class McpClient:
    """A client: where its configuration is, and under which member it lists servers."""

    name: str
    paths: Mapping[str, str]
    """Platform → path; `*` is any other. `~` is the home folder; a relative path is that of the current project."""
    member: str = "mcpServers"
    typed: bool = False
    """True if an entry states its transport."""

    def path(self, platform: str, home: Path, environ: Mapping[str, str]) -> Path:
        """Return the configuration file on a platform."""
        text = self.paths.get(platform, self.paths["*"])
        if text.startswith("%APPDATA%"):
            return Path(environ.get("APPDATA") or str(home / "AppData" / "Roaming")) / text.removeprefix("%APPDATA%/")
        return home / text.removeprefix("~/") if text.startswith("~/") else Path(text)

    def entry(self, command: str, arguments: Sequence[str]) -> Entry:
        """Return the entry of a server that the client starts."""
        kind = {"type": "stdio"} if self.typed else {}
        return {**kind, "command": command, "args": list(arguments)}


CLIENTS: Mapping[str, McpClient] = {
    client.name: client
    for client in (
        McpClient(
            "claude-desktop",
            {
                "darwin": "~/Library/Application Support/Claude/claude_desktop_config.json",
                "win32": "%APPDATA%/Claude/claude_desktop_config.json",
                "*": "~/.config/Claude/claude_desktop_config.json",
            },
        ),
        McpClient("claude-code", {"*": ".mcp.json"}, typed=True),
        McpClient("cursor", {"*": "~/.cursor/mcp.json"}),
        McpClient("gemini", {"*": "~/.gemini/settings.json"}),
        McpClient("vscode", {"*": ".vscode/mcp.json"}, member="servers", typed=True),
        McpClient("windsurf", {"*": "~/.codeium/windsurf/mcp_config.json"}),
    )
}


def find_client(name: str) -> McpClient:
    """Return the client of a name, or raise `NotFound`."""
    found = CLIENTS.get(name)
    if found is None:
        hint = did_you_mean(name, CLIENTS) or f"the clients are {listing(CLIENTS)}; --file names any other file"
        raise NotFound(f"there is no MCP client '{name}'", code="unknown_client", hint=hint)
    return found


def with_entry(text: str, client: McpClient, name: str, entry: Entry, path: Path) -> str:
    """Return the text of a configuration file with an entry; an empty text is an empty object."""
    try:
        document = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise InputError(
            f"'{path}' is not plain JSON: {error}",
            code="bad_config",
            hint=f"add this entry to '{client.member}' by hand: {json.dumps({name: entry})}",
        ) from None
    servers = document.setdefault(client.member, {}) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise InputError(f"'{path}' has no object '{client.member}'", code="bad_config", hint="correct the file first")
    servers[name] = entry
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def change_of(before: str, after: str, path: Path) -> str:
    """Return the change of a file as a unified diff; empty if nothing changes."""
    lines = unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="")
    return "\n".join(lines)

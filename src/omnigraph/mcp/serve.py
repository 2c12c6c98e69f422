"""The two transports, stdio and streamable HTTP. The only module that imports the MCP SDK.

Handlers of the SDK are coroutines; the graph is not. On stdio a call runs in a thread, and a cancelled request cancels
it. Over HTTP the server of OmniGraph already runs each request in a thread of its lane: `answer_http` runs one exchange
of the protocol there, on an event loop of its own, so that tokens, limits, admission and audit are those of any route.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError

from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.errors import Cancelled, Denied, InputError, NotFound, OmniGraphError
from omnigraph.mcp.endpoint import INSTRUCTIONS, Endpoint, UnknownName
from omnigraph.mcp.prompts import Prompt
from omnigraph.mcp.resources import TYPE_TEMPLATE, Resource
from omnigraph.mcp.session import Session
from omnigraph.mcp.tool import Answer, Tool
from omnigraph.version import __version__

NAME = "omnigraph"
_THREADS = 8
_HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
"""What the server has agreed on with the client before the exchange."""
_MCP_HEADERS = "mcp-"
_COMPLETED_MAX = 100
_log = logging.getLogger(__name__)

# The SDK logs the start and end of each stateless session.
logging.getLogger("mcp").setLevel(logging.WARNING)

T = TypeVar("T")
Params = Any
Context = Any


class Runner(Protocol):
    """Runs a function with the endpoint of a request."""

    def __call__(self, work: Callable[[Endpoint], T], /) -> Awaitable[T]:
        """Run the function."""


@dataclass(frozen=True)
class HttpAnswer:
    """The answer of one exchange: a JSON-RPC message, or nothing for a notification."""

    status: int
    body: bytes
    media_type: str | None


def serve_stdio(open_session: Callable[[Cancellation], Session]) -> None:
    """Serve one client on stdin and stdout until it closes them."""
    anyio.run(_serve_stdio, open_session)


async def _serve_stdio(open_session: Callable[[Cancellation], Session]) -> None:
    limiter = anyio.CapacityLimiter(_THREADS)

    async def run(work: Callable[[Endpoint], T]) -> T:
        cancel = Cancellation()
        try:
            return await anyio.to_thread.run_sync(
                lambda: work(Endpoint(open_session(cancel))), abandon_on_cancel=True, limiter=limiter
            )
        except anyio.get_cancelled_exc_class():
            cancel.cancel()
            raise

    server = make_server(run)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def answer_http(session: Session, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
    """Answer one request of streamable HTTP: stateless, with JSON. A cancelled call raises `Cancelled`."""
    stopped: list[Cancelled] = []

    async def run(work: Callable[[Endpoint], T]) -> T:
        try:
            return work(Endpoint(session))
        except Cancelled as error:
            stopped.append(error)
            raise

    answer = asyncio.run(_exchange(make_server(run), headers, body))
    if stopped:
        raise stopped[0]
    return answer


async def _exchange(server: Server[Any], headers: Mapping[str, str], body: bytes) -> HttpAnswer:
    """Run one request through the transport of the SDK."""
    passed = {name: value for name, value in headers.items() if name.startswith(_MCP_HEADERS)} | _HEADERS
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in passed.items()],
        "client": None,
        "server": None,
    }
    sent: list[Any] = []
    read = False

    async def receive() -> Any:
        nonlocal read
        if read:
            # The transport waits for a disconnect while it answers; the thread watches the real connection.
            await anyio.sleep_forever()
        read = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    manager = StreamableHTTPSessionManager(
        app=server,
        json_response=True,
        stateless=True,
        # The server has checked Host and Origin.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)
    start = next(message for message in sent if message["type"] == "http.response.start")
    media_types = [value.decode("latin-1") for name, value in start.get("headers", ()) if name == b"content-type"]
    answered = b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body")
    return HttpAnswer(start["status"], answered, media_types[0] if media_types and answered else None)


def make_server(run: Runner) -> Server[Any]:
    """Return a server of the SDK whose handlers call an endpoint."""

    async def list_tools(context: Context, params: Params) -> types.ListToolsResult:  # noqa: ARG001
        tools = await _guarded(run, Endpoint.tools)
        return types.ListToolsResult(tools=[_tool(tool) for tool in tools])

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:  # noqa: ARG001
        return _result(await _guarded(run, lambda endpoint: endpoint.call(params.name, params.arguments or {})))

    async def list_resources(context: Context, params: Params) -> types.ListResourcesResult:  # noqa: ARG001
        found = await _guarded(run, Endpoint.resources)
        return types.ListResourcesResult(resources=[_resource(each) for each in found])

    async def list_templates(context: Context, params: Params) -> types.ListResourceTemplatesResult:  # noqa: ARG001
        template = types.ResourceTemplate(
            uri_template=TYPE_TEMPLATE,
            name="type",
            description="One type with its properties and edges.",
            mime_type="text/plain",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:  # noqa: ARG001
        uri = str(params.uri)
        media_type, text = await _guarded(run, lambda endpoint: endpoint.read(uri))
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=media_type, text=text)])

    async def list_prompts(context: Context, params: Params) -> types.ListPromptsResult:  # noqa: ARG001
        found = await _guarded(run, Endpoint.prompts)
        return types.ListPromptsResult(prompts=[_prompt(each) for each in found])

    async def get_prompt(context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:  # noqa: ARG001
        text = await _guarded(run, lambda endpoint: endpoint.prompt(params.name, params.arguments or {}))
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(messages=[message])

    async def complete(context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:  # noqa: ARG001
        argument = params.argument
        found = await _guarded(run, lambda endpoint: endpoint.complete(argument.name, argument.value))
        return types.CompleteResult(completion=types.Completion(values=found[:_COMPLETED_MAX], total=len(found)))

    server: Server[Any] = Server(
        NAME,
        version=__version__,
        title="OmniGraph",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=lambda _: None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
    )
    # The server of OmniGraph makes the spans of its requests.
    server.middleware.clear()
    return server


async def _guarded(run: Runner, work: Callable[[Endpoint], T]) -> T:
    """Run a function; an error becomes the error of the protocol. Unexpected ones are logged without their text."""
    try:
        return await run(work)
    except UnknownName as error:
        raise MCPError(types.INVALID_PARAMS, str(error)) from None
    except (InputError, NotFound, Denied) as error:
        raise MCPError(types.INVALID_PARAMS, error.message) from None
    except OmniGraphError as error:
        raise MCPError(types.INTERNAL_ERROR, error.message) from None
    except Exception as error:
        stack = "".join(traceback.format_tb(error.__traceback__))
        _log.error("an MCP request failed: %s\n%s", type(error).__name__, stack)
        raise MCPError(types.INTERNAL_ERROR, "the server failed") from None


def _tool(tool: Tool) -> types.Tool:
    hints = tool.annotations()
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=hints["readOnlyHint"],
            destructive_hint=hints["destructiveHint"],
            idempotent_hint=hints["idempotentHint"],
            open_world_hint=hints["openWorldHint"],
        ),
    )


def _result(answer: Answer) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text)],
        structured_content=answer.structured,
        is_error=answer.is_error,
    )


def _resource(resource: Resource) -> types.Resource:
    return types.Resource(
        uri=cast("Any", resource.uri),
        name=resource.name,
        description=resource.description,
        mime_type=resource.media_type,
    )


def _prompt(prompt: Prompt) -> types.Prompt:
    argument = types.PromptArgument(name=prompt.argument, description=prompt.about, required=prompt.required)
    return types.Prompt(name=prompt.name, description=prompt.description, arguments=[argument])

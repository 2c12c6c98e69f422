"""One request from its headers to its response.

The order is: authentication, headers, policy, admission, body, engine. The policy may need the branch that a body
names, and most bodies are small: up to 64 KiB of a JSON body are read first. Each step refuses with an error; `handle`
turns every error into one form of answer, writes the audit record before the answer is sent, and logs one line.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from omnigraph.errors import Cancelled, LimitReached, OmniGraphError, Overloaded, Unauthorized
from omnigraph.graph_handle import context_of
from omnigraph.observer import observed, process_observer
from omnigraph.operations.stoppable import stoppable
from omnigraph.server.audit_records import audit_record, is_recorded
from omnigraph.server.auth.oidc.metadata import challenge
from omnigraph.server.caller import Caller
from omnigraph.server.errors import CLIENT_CLOSED, RequestFault, document_of, headers_of, internal_error, status_of
from omnigraph.server.messages import request as read
from omnigraph.server.messages.answers import Chunk
from omnigraph.server.messages.bodies import (
    SMALL_BODY,
    SpooledBody,
    check_length,
    media_type,
    new_body_file,
    read_body,
    spool_body,
)
from omnigraph.server.messages.content_negotiation import (
    CONTENT_TYPES,
    Negotiated,
    negotiate,
    wants_problem,
    wants_typed,
)
from omnigraph.server.messages.encoding import Encoded, encode, is_not_modified
from omnigraph.server.messages.responses import AnyResponse, EventResponse, Response, StreamResponse
from omnigraph.server.observability.request_observer import RequestObserver
from omnigraph.server.reporter import Outcome, Reporter
from omnigraph.server.route import Route
from omnigraph.server.scheduling.admission import ANONYMOUS, ActorLimits, AdmittedWrite, Lane
from omnigraph.server.scheduling.execution import LaneName, Stream, watching_disconnect
from omnigraph.server.scheduling.inline_reads import BODY_MAX, LIMIT_S, ROWS_MAX, Key
from omnigraph.server.scheduling.operations import Operation
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.decoding import decode_body, decode_query
from omnigraph.wire.document import encoder
from omnigraph.wire.problem_details import problem_details

if TYPE_CHECKING:
    from omnigraph.server.app import Server

MIN_COMMIT_WAIT_S = 2.0
ERROR_PAGE = "/docs/errors"
"""The page that explains error codes, relative to the server."""
_MIN_COMMIT_POLL_S = 0.05
_WRITE_BYTES = 256
"""Estimated bytes of a write without a body."""
_BODY_WEIGHT = 3
"""The copies of a JSON body in memory: its bytes, its text and its values."""
_SUFFIXES = {"application/x-ndjson": ".jsonl", "application/vnd.apache.arrow.stream": ".arrows"}
_COMMON = {
    "Cache-Control": "private, no-cache",
    "Vary": "Authorization, Accept, Accept-Encoding",
    "X-Content-Type-Options": "nosniff",
}
_log = logging.getLogger("omnigraph.server")


class Exchange:
    """One request on one route."""

    def __init__(self, server: Server, route: Route, scope: Scope, receive: Receive) -> None:
        self._server = server
        self._route = route
        self._scope = scope
        self._receive = receive
        self._started = time.perf_counter()
        self._timing: dict[str, float] = {}
        self._headers: dict[str, str] = scope["omnigraph.headers"]
        self._state = server.holder.current
        client = scope.get("client")
        tracing = server.tracing
        self._trace = (
            tracing.begin(scope["method"], route.path, route.name, self._headers) if tracing is not None else None
        )
        self._caller = Caller(
            server,
            self._state,
            read.request_id_of(self._headers),
            method=scope["method"],
            remote=client[0] if client else "local",
            headers=self._headers,
            scheme=scope.get("scheme", "http"),
            writes=route.writes,
            observer=RequestObserver(process_observer(), self._trace),
        )
        self._raw = b""
        self._input: Any = None
        self._commit: str | None = None
        self._body_begun = False
        self._body_size = 0
        """The declared or actual size of a body that is not small."""
        self._body_memory = 0
        self._write: AdmittedWrite | None = None
        self._is_read_admitted = False
        self._held = ExitStack()
        """Ends what admission counts for the request, unless an answer that continues takes it over."""
        self._disconnected = False
        self._stream: Stream | None = None
        self._first: Chunk | None = None
        self._response: AnyResponse | None = None
        self._error: OmniGraphError | None = None
        self._status = CLIENT_CLOSED

    async def handle(self, send: Send) -> None:
        """Answer the request."""
        reporter = self._server.reporter
        reporter.in_flight += 1
        try:
            await self._handle(send)
        finally:
            reporter.in_flight -= 1
            if self._trace is not None:
                self._trace.end(self._status, self._error.code if self._error is not None else None)

    async def _handle(self, send: Send) -> None:
        response: AnyResponse
        try:
            response = await self._respond()
        except ClientDisconnect:
            self._log(CLIENT_CLOSED)
            return
        except Exception as error:
            response = self._failure(error)
            await self._pace_refusal()
        try:
            await self._finish_with(response, send)
        finally:
            # A stream that was never sent still holds the slots of its request.
            if not isinstance(response, Response):
                await response.close()

    async def _finish_with(self, response: AnyResponse, send: Send) -> None:
        """Write the audit record, send the response and log the request."""
        answer = self._response = await self._audit(response)
        if answer.status == CLIENT_CLOSED:
            self._log(CLIENT_CLOSED)
            return
        complete = await answer.send(send, self._common_headers(), self._receive)
        self._log(answer.status if complete else CLIENT_CLOSED)

    # -- steps -----------------------------------------------------------------------------------

    async def _respond(self) -> AnyResponse:
        route, caller = self._route, self._caller
        if route.scope != "public":
            await self._authenticate()
        if not self._server.loop_turns.try_begin(caller.peer):
            await self._server.loop_turns.begin(caller.peer)
        path = {name: read.path_parameter(value) for name, value in self._scope.get("path_params", {}).items()}
        self._select_graph(path.pop("graph_id", None))
        self._read_headers()
        self._check_memory()
        if route.body != "json":
            self._decode_query()
        with self._held:
            try:
                if route.body == "json":
                    await self._read_json()
                self._gate(path)
                if route.body == "stream":
                    await self._spool()
                self._check_memory()
                await self._wait_for_commit()
                await self._decide_write(path)
                return await self._admit(path)
            finally:
                if caller.body is not None:
                    caller.body.discard()

    async def _pace_refusal(self) -> None:
        """Delay the answer if the caller is refused often."""
        if isinstance(self._error, Overloaded) and not self._server.is_draining:
            await asyncio.sleep(self._server.refusal_pace.delay(self._caller.peer))

    async def _authenticate(self) -> None:
        authenticator, started = self._state.authenticator, time.perf_counter()
        if authenticator is None:
            return
        try:
            self._caller.principal = await authenticator.find(self._headers.get("authorization"))
        except Unauthorized:
            tries = self._server.failed_tries
            tries.record(self._caller.remote)
            await asyncio.sleep(tries.delay_for(self._caller.remote))
            raise
        finally:
            if self._trace is not None:
                self._trace.phase("auth", started, time.perf_counter())

    def _select_graph(self, graph_id: str | None) -> None:
        caller, state = self._caller, self._state
        if self._route.several_graphs and state.graph_list.single:
            raise RequestFault(
                "a server of a single graph has no list of graphs",
                status=HTTPStatus.METHOD_NOT_ALLOWED,
                code="method_not_allowed",
                hint="the paths without /graphs/{graph_id} are those of its graph",
                headers={"Allow": ""},
            )
        if self._route.scope == "server":
            caller.access = state.server_access(caller.principal)
            return
        if self._route.scope != "graph":
            return
        served = state.find_graph(graph_id)
        caller.url = "" if graph_id is None else f"/graphs/{graph_id}"
        caller.served = served
        if self._trace is not None:
            self._trace.set_graph(served.graph_id)
        caller.access = state.graph_access(served, caller.principal)
        caller.opened = served.handle(caller.access, caller.request_id if self._route.may_write else None)

    def _read_headers(self) -> None:
        caller, headers, route = self._caller, self._headers, self._route
        caller.negotiated = negotiate(headers.get("accept"), headers.get("accept-encoding"), route.forms)
        limits = self._state.settings.limits
        caller.timeout_s = read.timeout_of(headers, limits.query_s, limits.query_max_s)
        caller.if_commit = read.if_graph_commit_of(headers, required=route.conditional)
        if route.may_write:
            caller.idempotency_key = read.idempotency_key_of(headers)
            caller.if_commit = caller.if_commit or read.if_match_of(headers)

    def _check_memory(self) -> None:
        """Refuse work on a graph above the limit of memory. Requests about the server itself are answered."""
        if self._route.scope == "graph" and self._route.lane is not None:
            self._server.memory.check()

    def _decode_query(self) -> None:
        route = self._route
        given = read.query_of(self._scope)
        if route.input is not None:
            self._input = decode_query(route.input, given, strict=route.strict, collects=route.collects)
        elif given and route.strict:
            raise RequestFault(f"this route takes no parameter '{next(iter(given))}'", code="unknown_member")

    async def _read_json(self) -> None:
        route, headers = self._route, self._headers
        limits = self._state.settings.limits
        limit = limits.envelope_bytes if route.limit == "envelope" else limits.body_bytes
        limit = min(limit, limits.body_memory // (2 * _BODY_WEIGHT))
        encoding = headers.get("content-encoding")
        self._expect_body(limit, encoding)
        self._body_begun = True
        self._raw = self._caller.raw = await read_body(
            self._receive, limit, self._hold_json, self._run_body_step, encoding
        )
        if self._raw:
            self._check_media_type()
        assert route.input is not None
        if len(self._raw) <= SMALL_BODY:
            self._input = decode_body(route.input, self._raw or b"{}", strict=route.strict)
        else:
            self._input = await self._run_body_step(partial(decode_body, route.input, self._raw, strict=route.strict))
        if route.writes_if is not None:
            self._caller.writes = self._is_given(route.writes_if)

    async def _spool(self) -> None:
        headers, limit = self._headers, self._state.settings.limits.load_bytes
        kind = self._check_media_type()
        encoding = headers.get("content-encoding")
        self._expect_body(limit, encoding)
        await self._count()
        self._body_begun = True
        body = self._caller.body = SpooledBody(new_body_file(_SUFFIXES.get(kind, "")), kind)
        await spool_body(self._receive, limit, body, self._hold_spooled, self._run_body_step, encoding)

    async def _run_body_step(self, work: Callable[[], Any]) -> Any:
        """Run a step of reading a body in a thread."""
        return await self._server.execution.call("bodies", work)

    def _expect_body(self, limit: int, encoding: str | None) -> None:
        """Refuse a body whose declared size exceeds the limit, and note the size."""
        length = self._headers.get("content-length")
        check_length(length, limit)
        if encoding is None and length is not None and length.isdigit():
            self._body_size = int(length)

    async def _hold_json(self, size: int) -> None:
        """Admit a request whose body is not small, and count the memory of the body."""
        if not self._body_memory:
            self._check_possible()
        self._body_size = max(self._body_size, size)
        await self._count()
        bodies, actor = self._server.admission.bodies, self._caller.actor or ANONYMOUS
        more = self._body_size * _BODY_WEIGHT - self._body_memory
        if more:
            bodies.grow(actor, more, self._state.settings.limits.body_memory)
            self._held.callback(bodies.shrink, actor, more)
            self._body_memory += more

    async def _hold_spooled(self, size: int) -> None:
        """Count the bytes of a body in its file."""
        self._body_size = max(self._body_size, size)
        await self._count()

    def _check_possible(self) -> None:
        """Refuse a caller who has the right to this action on no branch."""
        access = self._caller.access
        if access is None:
            return
        for gate in self._route.gates:
            if gate.given is None and not gate.hides:
                access.check_possible(gate.action)

    def _check_media_type(self) -> str:
        kind = media_type(self._headers.get("content-type"))
        if kind not in self._route.media_types:
            taken = ", ".join(self._route.media_types)
            raise RequestFault(
                f"the body has the media type {kind or 'none'!r}; this route takes {taken}",
                status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                code="unsupported_media_type",
                hint=f"send the header 'Content-Type: {self._route.media_types[0]}'",
            )
        return kind

    def _gate(self, path: Mapping[str, str]) -> None:
        """Ask the policy before anything is admitted; `Graph` asks again with the resolved commit."""
        access = self._caller.access
        if access is None:
            return
        started = time.perf_counter()
        for gate in self._route.gates:
            if gate.given is not None and not self._is_given(gate.given):
                continue
            # Only the graph knows the owner of a branch, and decides again.
            by_owner = access.reads_owners and (gate.branch is not None or gate.target is not None)
            if not by_owner and not any(self._member(name, path) is not None for name in gate.unless):
                access.check(gate.action, self._branch(gate.branch, path), self._branch(gate.target, path))
            elif not gate.hides:
                access.check_possible(gate.action)
        self._mark("policy", started, time.perf_counter())

    def _mark(self, phase: str, started: float, ended: float) -> None:
        """Note the time of a phase."""
        self._timing[phase] = ended - started
        if self._trace is not None:
            self._trace.phase(phase, started, ended)

    def _is_given(self, name: str) -> bool:
        return getattr(self._input, name, None) is not None

    def _branch(self, name: str | None, path: Mapping[str, str]) -> str | None:
        return None if name is None else self._member(name, path) or MAIN

    def _member(self, name: str, path: Mapping[str, str]) -> str | None:
        if name in path:
            return path[name]
        value = getattr(self._input, name, None)
        return value if isinstance(value, str) else None

    async def _wait_for_commit(self) -> None:
        """Wait until the graph contains the commit that `Omnigraph-Min-Commit` names.

        A commit that the caller may neither read nor change is waited for in vain, like one that does not exist.
        """
        served, access = self._caller.served, self._caller.access
        wanted = read.min_commit_of(self._headers) if served is not None else None
        if wanted is None or served is None or access is None:
            return
        known = self._server.known_commits
        if known.has_seen(served, access, wanted):
            return
        deadline = time.monotonic() + MIN_COMMIT_WAIT_S
        while not await self._server.execution.call("streams", partial(known.find, served, access, wanted)):
            if time.monotonic() >= deadline:
                raise Overloaded(
                    f"this server does not see commit '{wanted}' yet",
                    scope="server",
                    retry_after_s=1,
                    limit="min_commit",
                )
            await asyncio.sleep(_MIN_COMMIT_POLL_S)

    async def _decide_write(self, path: Mapping[str, str]) -> None:
        """Find out whether a request writes, if only the graph tells."""
        decide = self._route.writes_when
        if decide is not None:
            work = partial(decide, self._caller, self._input, path)
            self._caller.writes = await self._server.execution.call("streams", work)

    async def _admit(self, path: Mapping[str, str]) -> AnyResponse:
        route, caller, server = self._route, self._caller, self._server
        if route.lane is None:
            return self._finish(self._work(path))
        key = server.inline_reads.key_of(caller, self._input) if len(self._raw) <= BODY_MAX else None
        if key is not None and server.inline_reads.permits(key, caller):
            started = time.perf_counter()
            answered = self._run_inline(key, path)
            server.loop_turns.spend(time.perf_counter() - started)
            if answered is not None:
                return answered
        lane: LaneName = "writes" if route.writes_when is not None and caller.writes else route.lane
        response = await self._run_in_lane(lane, path)
        if key is not None and isinstance(response, Response):
            seconds = self._timing.get("engine", 1.0) + self._timing.get("encode", 1.0)
            server.inline_reads.learn(key, self._commit, seconds, len(response.body))
        return response

    def _run_inline(self, key: Key, path: Mapping[str, str]) -> Response | None:
        """Run a short read on the event loop; None if it exceeds a limit, so that a thread runs it."""
        caller = self._caller
        asked, caller.timeout_s = caller.timeout_s, min(caller.timeout_s, LIMIT_S)
        caller.rows_max = ROWS_MAX
        try:
            encoded = self._work(path)
        except LimitReached as error:
            self._server.inline_reads.exceeded(key, error)
            caller.timeout_s, caller.rows_max = asked, None
            return None
        if encoded.chunks is not None:
            self._server.inline_reads.too_large(key)
            caller.timeout_s, caller.rows_max = asked, None
            return None
        self._server.inline_reads.answered += 1
        self._commit = encoded.commit
        return Response(encoded.status, encoded.headers, encoded.body)

    async def _run_in_lane(self, name: LaneName, path: Mapping[str, str]) -> AnyResponse:
        """Take the slots of the actor and of a lane, and run the request in a thread."""
        route, caller, server = self._route, self._caller, self._server
        actor = caller.actor or ANONYMOUS
        await self._count()
        held = self._held
        started = time.perf_counter()
        lane = server.execution.lanes[name]
        operation = server.operations.start(caller, route, name, self._operation_branch(path))
        caller.operation = operation
        held.callback(server.operations.end, operation)
        await self._enter(lane, operation, actor, self._state.settings.limits.queue_s)
        held.callback(lane.leave, actor)
        self._mark("queue", started, time.perf_counter())
        operation.begin()
        held.callback(self._track())
        async with watching_disconnect(self._receive, self._on_disconnect):
            encoded = await server.execution.call(name, partial(self._work, path))
            response = self._finish(encoded)
        if encoded.background is not None:
            work = encoded.background
            server.operations.continue_work(operation, work, held.pop_all(), server.execution, name)
        elif not isinstance(response, Response):
            response.held = held.pop_all()
        return response

    def _operation_branch(self, path: Mapping[str, str]) -> str | None:
        """Return the branch that the request concerns; None if it names a point or no branch."""
        gate = next(iter(self._route.gates), None)
        if gate is None or any(self._member(name, path) is not None for name in gate.unless):
            return None
        return self._branch(gate.target or gate.branch, path)

    async def _enter(self, lane: Lane, operation: Operation, actor: str, queue_s: float) -> None:
        """Take a slot. A read whose client disconnects leaves the queue; a write stays in it until it is cancelled."""
        if lane.try_enter(actor):
            return
        turn = lane.queue(actor)

        def give_up(error: Exception) -> None:
            if not turn.done():
                turn.set_exception(error)

        def disconnect() -> None:
            if not self._caller.writes:
                give_up(ClientDisconnect())

        operation.on_cancel = partial(give_up, Cancelled("the request was cancelled while it waited"))
        async with watching_disconnect(self._receive, disconnect):
            await lane.wait(turn, actor, queue_s)

    def _track(self) -> Callable[[], None]:
        execution, caller = self._server.execution, self._caller
        if not caller.writes:
            return execution.track_read(caller.cancel)
        if self._route.tag == "maintenance":
            return execution.track_maintenance(caller.cancel)
        return execution.track_write()

    async def _count(self) -> None:
        """Count the request for its actor. A write over the limits of its actor waits for its turn."""
        caller, admission, limits = self._caller, self._server.admission, self._state.settings.limits
        actor = caller.actor or ANONYMOUS
        size = max(self._body_size, len(self._raw), _WRITE_BYTES)
        if self._write is not None:
            self._write.resize(size)
            return
        if self._is_read_admitted and not caller.writes:
            return
        bounds = ActorLimits(limits.reads_per_actor, limits.writes_per_actor, limits.bytes_per_actor)
        if caller.writes:
            self._write = await admission.write(actor, size, bounds, limits.queue_s)
            self._held.callback(self._write.release)
        else:
            self._held.callback(admission.read(actor, bounds))
            self._is_read_admitted = True

    def _on_disconnect(self) -> None:
        self._disconnected = True
        if not self._caller.writes:
            self._caller.cancel.cancel()

    def _work(self, path: Mapping[str, str]) -> Encoded:
        """Run the route function and encode its answer, in one thread."""
        try:
            return self._call(path)
        finally:
            if self._caller.body is not None:
                # The removal of a large file takes time: not on the event loop.
                self._caller.body.discard()

    def _call(self, path: Mapping[str, str]) -> Encoded:
        caller, route = self._caller, self._route
        started = time.perf_counter()
        if caller.writes and caller.state.audit is not None:
            caller.state.audit.check()
        caller.fingerprint = self._fingerprint(path)
        unchanged = is_not_modified(caller, self._input, path) if route.etag else None
        if unchanged is not None:
            return unchanged
        arguments = path if self._input is None else {"body": self._input, **path}
        with observed(caller.observer), self._limited():
            reply = route.handler(caller, **arguments)
        done = time.perf_counter()
        encoded = encode(caller, reply)
        if encoded.chunks is not None and route.lane is not None and caller.method != "HEAD":
            self._stream = Stream(self._server.execution, route.lane, encoded.chunks)
            self._first = self._stream.first()
        self._timing["engine"] = done - started
        self._mark("encode", done, time.perf_counter())
        return encoded

    def _limited(self) -> AbstractContextManager[None]:
        """Return a context in which the time limit and the cancellation of a read apply to every phase of its work.

        Writes, exports and slow work have limits of their own, and a chunk of a stream is computed outside.
        """
        caller = self._caller
        if self._route.lane != "reads" or caller.writes:
            return nullcontext()
        return stoppable("request", caller.cancel, caller.timeout_s)

    def _fingerprint(self, path: Mapping[str, str]) -> str:
        """Return 96 bits of a hash of the request, its form, what the caller may see, and the purge epoch.

        A purge and a redaction change the answers about every commit. The epoch is read before the answer: if it
        changes meanwhile, the tag is that of an earlier answer, which no later request confirms.
        """
        caller = self._caller
        visible = caller.rights if self._route.by_rights else caller.visible
        epoch = ""
        if caller.opened is not None and not caller.writes:
            epoch = str(context_of(caller.opened).repository.read_state().purge_epoch)
        parts = (self._route.name, *path.values(), *caller.negotiated.parts, visible, epoch)
        text = "\0".join(parts).encode() + b"\0" + self._scope["query_string"] + b"\0" + self._raw
        return hashlib.sha256(text).hexdigest()[:24]

    def _finish(self, encoded: Encoded) -> AnyResponse:
        self._commit = encoded.commit
        caller, execution, lane = self._caller, self._server.execution, self._route.lane
        if caller.method == "HEAD" and (encoded.chunks is not None or encoded.poll is not None):
            return Response(encoded.status, encoded.headers, has_length=False)
        if self._stream is not None:
            status, headers = encoded.status, encoded.headers
            return StreamResponse(status, headers, self._stream, self._first, caller.cancel, self._report)
        if encoded.poll is not None and lane is not None:
            return EventResponse(
                encoded.headers, encoded.poll, execution, lane, caller.cancel, self._report, encoded.body
            )
        return Response(encoded.status, encoded.headers, encoded.body)

    # -- errors, audit, log ------------------------------------------------------------------------

    def _failure(self, error: Exception) -> Response:
        if not isinstance(error, OmniGraphError):
            self._report(error)
        shown = self._error = internal_error(error)
        if isinstance(shown, Overloaded):
            self._server.admission.count_refusal(shown)
        operation = self._caller.operation
        if isinstance(shown, Cancelled) and operation is not None and operation.stopped is not None:
            shown = operation.stopped
        if isinstance(shown, Cancelled) and self._disconnected:
            return Response(CLIENT_CLOSED, {})
        if isinstance(shown, Cancelled) and self._server.is_draining:
            shown = Overloaded("the server shuts down", scope="server", retry_after_s=1, limit="draining")
        response = error_response(shown, self._caller.request_id, self._headers.get("accept"))
        found = self._state.authenticator
        if isinstance(shown, Unauthorized) and found is not None and found.json_web_tokens is not None:
            response.headers["WWW-Authenticate"] = challenge(shown, self._caller.resource)
        return response

    def _report(self, error: BaseException) -> None:
        """Log an unexpected failure: its type and the stack, but not its text, which may hold values."""
        stack = "".join(traceback.format_tb(error.__traceback__))
        _log.error("request %s failed: %s\n%s", self._caller.request_id, type(error).__name__, stack)

    async def _audit(self, response: AnyResponse) -> AnyResponse:
        caller = self._caller
        audit, status = self._state.audit, response.status
        if audit is None or not is_recorded(self._route, caller, status):
            return response
        record = audit_record(self._route, caller, status, self._commit, self._ms)
        durable = self._caller.writes or record.decision == "deny"
        try:
            await self._server.execution.call("audit", partial(audit.record, record, durable=durable))
        except Exception as error:
            return self._failure(error)
        return response

    @property
    def _ms(self) -> float:
        return (time.perf_counter() - self._started) * 1000

    def _common_headers(self) -> dict[str, str]:
        headers = {**_COMMON, "X-Request-Id": self._caller.request_id}
        if not self._body_begun:
            headers |= closing_headers(self._headers)
        if self._commit is not None:
            headers["Omnigraph-Commit"] = self._commit
        if self._trace is not None:
            headers |= self._trace.headers
        if self._timing:
            headers["Server-Timing"] = ", ".join(f"{name};dur={self._rounded(s)}" for name, s in self._timing.items())
        return headers

    def _rounded(self, seconds: float) -> str:
        """Return milliseconds; whole ones under rules for rows, so that times tell less of hidden rows."""
        access = self._caller.access
        return f"{seconds * 1000:.{0 if access is not None and access.has_row_rules else 3}f}"

    def _log(self, status: int) -> None:
        self._status = status
        size = self._response.size if self._response is not None else None
        seconds = time.perf_counter() - self._started
        outcome = Outcome(status, seconds, self._commit, size, self._error, self._disconnected)
        if self._trace is not None:
            observer = self._caller.observer
            self._trace.set_query(observer.query_name, observer.plan_hash, self._caller.audit.get("rows"))
        self._server.reporter.finished(self._route, self._caller, self._input, outcome, self._timing)


def error_response(error: OmniGraphError, request_id: str, accept: str | None) -> Response:
    """Return the response of an error."""
    status = status_of(error)
    typed = wants_typed(accept)
    document = document_of(error, request_id, typed=typed)
    headers = headers_of(error)
    if wants_problem(accept):
        body = encoder.encode(problem_details(document, status, documentation=ERROR_PAGE))
        return Response(status, {**headers, "Content-Type": CONTENT_TYPES["problem"]}, body)
    content_type = Negotiated("json", typed=typed).content_type
    return Response(status, {**headers, "Content-Type": content_type}, encoder.encode(document))


def closing_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the header that ends the connection if the client waits for permission to send a body that is not read.

    The client may send the body or its next request; the server cannot tell one from the other.
    """
    return {"Connection": "close"} if "expect" in headers else {}


async def answer_fault(fault: RequestFault, scope: Scope, receive: Receive, send: Send, reporter: Reporter) -> None:
    """Answer a request that reaches no route."""
    started = time.perf_counter()
    headers = scope["omnigraph.headers"]
    request_id = read.request_id_of(headers)
    response = error_response(fault, request_id, headers.get("accept"))
    common = {**_COMMON, "X-Request-Id": request_id, **closing_headers(headers)}
    await response.send(send, common, receive)
    reporter.refused(scope["method"], fault.status, time.perf_counter() - started, request_id)

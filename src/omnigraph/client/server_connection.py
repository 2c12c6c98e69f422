"""`ServerConnection`: the administration of a server, as opposed to one of its graphs."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from omnigraph.client.call import Call
from omnigraph.client.messages import Request, path_of
from omnigraph.client.transport.address import Settings
from omnigraph.client.transport.sync_loop import SyncLoop
from omnigraph.wire.server_state import OperationDocument, ServerStatusDocument
from omnigraph.wire.webhooks import WebhookListDocument


class ServerConnection:
    """Reads the status of a server process and cancels its operations. The token needs the action `admin`."""

    def __init__(self, settings: Settings) -> None:
        self._loop = SyncLoop(settings)

    def status(self) -> ServerStatusDocument:
        """Return the state of the process that answers."""
        return self._loop.run(_status())

    def webhooks(self) -> WebhookListDocument:
        """Return the progress of the webhooks."""
        return self._loop.run(_webhooks())

    def cancel(self, operation_id: str) -> OperationDocument:
        """Cancel an operation; one that ended does not change."""
        return self._loop.run(_cancel(operation_id))

    def close(self) -> None:
        """Close the connections."""
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _status() -> Call[ServerStatusDocument]:
    answer = yield Request(method="GET", path="/status", scope="server")
    return answer.document(ServerStatusDocument)


def _webhooks() -> Call[WebhookListDocument]:
    answer = yield Request(method="GET", path="/webhooks", scope="server")
    return answer.document(WebhookListDocument)


def _cancel(operation_id: str) -> Call[OperationDocument]:
    answer = yield Request(method="DELETE", path=path_of("operations", operation_id), scope="server")
    return answer.document(OperationDocument)

/** The change feed of a branch as a stream. */
import type { Client } from "../api/client";
import { readEvents } from "../api/events";
import type { ChangeBlockOutput, ChangesOutput } from "../api/feedTypes";

export interface FeedRequest {
  readonly graph: string;
  readonly branch: string;
  readonly type?: string | undefined;
  readonly op?: string | undefined;
  /** The start without a cursor: `now`, `beginning` or `after:<commit>`. */
  readonly start: string;
}

export interface FeedListener {
  onOpen(): void;
  /** The stream continues after this cursor. */
  onCursor(cursor: string): void;
  onBlocks(blocks: readonly ChangeBlockOutput[]): void;
}

export interface FeedSource {
  /** Follows the commits of a branch until the stream ends; a cursor continues an earlier stream. */
  follow(request: FeedRequest, cursor: string | null, listener: FeedListener, signal: AbortSignal): Promise<void>;
}

export function httpFeed(client: Client, path: (graph: string, route: string) => string): FeedSource {
  return {
    async follow({ graph, ...params }, cursor, listener, signal) {
      const headers = cursor === null ? {} : { "Last-Event-ID": cursor };
      const response = await client.send(path(graph, "changes/stream"), { params, headers, accept: "text/event-stream", signal });
      listener.onOpen();
      for await (const event of readEvents(response, listener.onCursor)) {
        listener.onBlocks((JSON.parse(event.data) as ChangesOutput).blocks);
      }
    },
  };
}

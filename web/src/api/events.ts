/** Server-sent events over `fetch`, which sends the token as a header; `EventSource` cannot. */

export interface ServerEvent {
  readonly id: string | null;
  readonly kind: string;
  readonly data: string;
}

/** Yields the events of a stream until it ends. `onId` also receives ids without an event: where the stream stands. */
export async function* readEvents(response: Response, onId?: (id: string) => void): AsyncGenerator<ServerEvent> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const id = /^id: ?(.*)$/m.exec(block)?.[1];
      if (id !== undefined) onId?.(id);
      const event = parseEvent(block);
      if (event !== null) yield event;
    }
  }
}

/** Returns the event of a block of lines; null for a comment. */
export function parseEvent(block: string): ServerEvent | null {
  let [id, kind, data]: [string | null, string, string[]] = [null, "message", []];
  for (const line of block.split(/\r?\n/)) {
    const at = line.indexOf(":");
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    if (name === "id") id = value;
    else if (name === "event") kind = value;
    else if (name === "data") data = [...data, value];
  }
  return data.length === 0 ? null : { id, kind, data: data.join("\n") };
}

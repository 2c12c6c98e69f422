/** Code that follows the feed as the screen does, with its filter. */
import type { FeedRequest } from "../../source/feed";

const shell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export function pythonConsumer(address: string, request: FeedRequest): string {
  const filter = [
    `branch=${JSON.stringify(request.branch)}`,
    ...(request.type === undefined ? [] : [`types=[${JSON.stringify(request.type)}]`]),
    ...(request.op === undefined ? [] : [`ops=[${JSON.stringify(request.op)}]`]),
  ].join(", ");
  return `import time

import omnigraph as og

graph = og.open(${JSON.stringify(address)})
cursor = page = None  # load the cursor that was stored last
while True:
    answer = graph.changes(cursor, start=${JSON.stringify(request.start)}, page=page, ${filter})
    for block in answer:
        for change in block:
            print(block.commit.id, change.op, change.type_name, change.id)
    page = answer.page
    if answer.cursor is not None:
        cursor = answer.cursor  # store it together with the result of the processing
    if answer.caught_up:
        time.sleep(1)
`;
}

export function curlConsumer(address: string, path: string, request: FeedRequest): string {
  const params = new URLSearchParams({ branch: request.branch, start: request.start });
  if (request.type !== undefined) params.set("type", request.type);
  if (request.op !== undefined) params.set("op", request.op);
  return `curl -N ${shell(`${address}/${path}?${params.toString()}`)} \\\n  -H "Authorization: Bearer $OMNIGRAPH_TOKEN" \\\n  -H 'Accept: text/event-stream'\n`;
}

export function commandConsumer(address: string, request: FeedRequest): string {
  const filter = [...(request.type === undefined ? [] : [`--type ${shell(request.type)}`]), ...(request.op === undefined ? [] : [`--op ${shell(request.op)}`])];
  return [`omnigraph changes poll --branch ${shell(request.branch)} --start ${shell(request.start)}`, ...filter, `--server ${shell(address)}`].join(" \\\n  ") + "\n";
}

/** The command that restarts a consumer after a gap. */
export const baselineCommand = (branch: string): string => `omnigraph changes baseline --branch ${shell(branch)} --out baseline.jsonl`;

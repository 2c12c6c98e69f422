/** The shortest path from the node where a walk began, shown on the page of each further node. */
import { Icon } from "../../kit/Icon";
import { Loading, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { isNode, nodeLabel } from "../../kit/Value";
import type { Place } from "../../source/source";
import { source } from "../../state/context";
import { href, link } from "../../state/location";
import { text } from "../../text/en";

const EDGES_MAX = 6;

interface PathValue {
  nodes: readonly unknown[];
  edges: readonly { type?: string; from?: string }[];
}

/** Returns the start of the walk, as the link has it. */
export const walkFrom = (): string | null => link.value.params["from"] ?? null;

function startOf(type: string, id: string): readonly [string, string] | null {
  try {
    const start = JSON.parse(walkFrom() ?? "null") as unknown;
    if (!Array.isArray(start) || typeof start[0] !== "string" || typeof start[1] !== "string") return null;
    return start[0] === type && start[1] === id ? null : [start[0], start[1]];
  } catch {
    return null;
  }
}

export function PathFrom({ here, type, id }: { here: Place; type: string; id: string }) {
  const start = startOf(type, id);
  const loaded = useLoad(start === null || !/^\w+$/.test(start[0]) ? null : JSON.stringify([here.commit, start, type, id]), async (signal) => {
    const [fromType, fromId] = start as readonly [string, string];
    const request = { text: text.entity.pathQuery(fromType, type, EDGES_MAX), name: null, params: { a: fromId, b: id } };
    const table = await source.query(here, request, null, signal);
    return table.rowCount === 0 ? null : (table.cell(0, 0) as PathValue);
  });
  if (start === null) return null;
  const rest = Object.fromEntries(Object.entries(link.value.params).filter(([name]) => name !== "from"));
  return (
    <section class="card path" aria-label={text.entity.pathFrom(start[1])}>
      <strong>
        <Plain text={text.entity.pathFrom(start[1])} />
      </strong>
      <Loading of={loaded}>{(path) => (path === null ? <span class="muted">{text.entity.noPath(EDGES_MAX)}</span> : <Steps path={path} />)}</Loading>
      <a class="button plain icon" href={href({ params: rest })} aria-label={text.entity.stopWalk} title={text.entity.stopWalk}>
        <Icon name="close" />
      </a>
    </section>
  );
}

function Steps({ path }: { path: PathValue }) {
  const nodes = path.nodes.filter(isNode);
  return (
    <ol class="steps">
      {nodes.map((node, index) => {
        const edge = path.edges[index - 1];
        const forward = edge?.from === nodes[index - 1]?.id;
        const type = typeof node["type"] === "string" ? node["type"] : "";
        return (
          <li key={`${type} ${node.id}`}>
            {edge === undefined ? null : <span class="muted small">{forward ? `— ${edge.type ?? ""} →` : `← ${edge.type ?? ""} —`}</span>}
            <a class="chip" href={href({ screen: "entity", path: [type, node.id], params: {} })}>
              <Plain text={nodeLabel(node, node.id)} />
            </a>
          </li>
        );
      })}
    </ol>
  );
}

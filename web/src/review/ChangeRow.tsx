/** One changed row: what it is, which of its properties changed, and whether it was viewed. */
import { useEffect, useRef, useState } from "preact/hooks";

import type { RowChangeOutput } from "../api/reviewTypes";
import type { CatalogOutput } from "../api/types";
import { Icon } from "../kit/Icon";
import { kindOf } from "../kit/kinds";
import { Plain } from "../kit/Plain";
import { nodeLabel, Value } from "../kit/Value";
import { href } from "../state/location";
import { text } from "../text/review";
import { changedProperties, nodeKey, rowKey, SIGNS } from "./change";
import { ChangedValue } from "./ChangedValue";

const PROPERTIES_SHOWN = 5;
const EDGES_SHOWN = 50;

export interface RowContext {
  readonly catalog: CatalogOutput | undefined;
  /** Words of nodes, by key. */
  readonly labels: ReadonlyMap<string, string>;
  readonly beforeRef: string | null;
  readonly afterRef: string | null;
}

interface Props {
  change: RowChangeOutput;
  context: RowContext;
  /** The place in the list, from 1. */
  position: number;
  selected: boolean;
  viewed: boolean;
  onSelect(): void;
  onViewed(viewed: boolean): void;
  /** Deleted edges that went with a deleted node. */
  edges?: { readonly rows: readonly RowChangeOutput[]; readonly more: boolean } | undefined;
  /** What another screen shows below a row, such as comments. */
  children?: preact.ComponentChildren;
}

export function ChangeRow({ change, context, position, selected, viewed, onSelect, onViewed, edges, children }: Props) {
  const root = useRef<HTMLElement>(null);
  useEffect(() => {
    if (selected) root.current?.scrollIntoView({ block: "nearest" });
  }, [selected]);
  return (
    <article class="change" aria-posinset={position} aria-setsize={-1} data-op={change.op} data-row={rowKey(change)} aria-current={selected ? "true" : undefined} ref={root}>
      <header>
        <button type="button" class="change-name" onClick={onSelect} aria-pressed={selected}>
          <span class={`sign ${change.op}`} title={text.ops[change.op]} role="img" aria-label={text.ops[change.op]}>
            {SIGNS[change.op]}
          </span>
          <RowTitle change={change} context={context} />
        </button>
        <RowLink change={change} context={context} />
        <label class="viewed">
          <input type="checkbox" checked={viewed} onChange={(event) => onViewed(event.currentTarget.checked)} />
          {text.diff.viewed}
        </label>
      </header>
      {viewed && !selected ? null : <Properties change={change} />}
      {edges === undefined || edges.rows.length === 0 || (viewed && !selected) ? null : <EdgesGone edges={edges} context={context} />}
      {children}
    </article>
  );
}

export function RowTitle({ change, context }: { change: RowChangeOutput; context: RowContext }) {
  const { catalog, labels } = context;
  if (change.kind === "node") {
    const label = nodeLabel(change.after ?? change.before ?? {}, change.id);
    return (
      <span class={`row-title kind-${kindOf(catalog, change.type_name)}`}>
        <span class="chip-dot" />
        <strong class="cut">
          <Plain text={label} />
        </strong>
        <span class="muted cut">
          {change.type_name}
          {label === change.id ? null : (
            <>
              {" "}
              <Plain text={change.id} />
            </>
          )}
        </span>
      </span>
    );
  }
  const type = catalog?.edges.find((each) => each.name === change.type_name);
  const end = (name: string | undefined, id: unknown) => labels.get(nodeKey(name ?? "", String(id))) ?? String(id);
  const { src, dst } = change.endpoints ?? { src: null, dst: null };
  return (
    <span class="row-title">
      <span class="cut">
        <Plain text={end(type?.from, src)} />
      </span>
      <span class="edge-name">
        <span class="cut">{change.type_name}</span>
      </span>
      <span class="cut">
        <Plain text={end(type?.to, dst)} />
      </span>
    </span>
  );
}

/** Opens a node as it is after the change; a deleted one as it was. */
function RowLink({ change, context }: { change: RowChangeOutput; context: RowContext }) {
  const ref = change.op === "delete" ? context.beforeRef : context.afterRef;
  if (change.kind !== "node" || ref === null) return null;
  const what = text.diff.openAt(change.id, change.op);
  return (
    <a class="button plain icon small" href={href({ ref, screen: "entity", path: [change.type_name, change.id], params: {} })} aria-label={`${text.diff.open} ${what}`} title={text.diff.open}>
      <Icon name="link" />
    </a>
  );
}

function Properties({ change }: { change: RowChangeOutput }) {
  const [all, setAll] = useState(false);
  const changed = changedProperties(change);
  if (changed.length === 0) return null;
  const cut = change.op !== "update" && changed.length > PROPERTIES_SHOWN + 1;
  const shown = cut && !all ? changed.slice(0, PROPERTIES_SHOWN) : changed;
  return (
    <div class="change-body">
      <dl class="changed-properties">
        {shown.map((each) => (
          <div key={each.name}>
            <dt>{each.name}</dt>
            <dd>
              {change.op === "update" ? (
                <ChangedValue before={each.before} after={each.after} />
              ) : (
                <span class={change.op === "insert" ? "only-new" : "only-old"}>
                  <Value value={change.op === "insert" ? each.after : each.before} />
                </span>
              )}
            </dd>
          </div>
        ))}
      </dl>
      {cut ? (
        <button type="button" class="more-text" onClick={() => setAll(!all)} aria-expanded={all}>
          {all ? text.diff.showLess : text.diff.showAll(changed.length)}
        </button>
      ) : null}
    </div>
  );
}

function EdgesGone({ edges, context }: { edges: { readonly rows: readonly RowChangeOutput[]; readonly more: boolean }; context: RowContext }) {
  return (
    <details class="edges-gone">
      <summary>{text.diff.withIt(edges.rows.length, edges.more)}</summary>
      <ul>
        {edges.rows.slice(0, EDGES_SHOWN).map((edge) => (
          <li key={rowKey(edge)}>
            <span class="sign delete" aria-hidden="true">
              {SIGNS.delete}
            </span>
            <RowTitle change={edge} context={context} />
          </li>
        ))}
      </ul>
    </details>
  );
}

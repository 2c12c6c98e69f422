/** The left pane: changes per type, from the summary. A type narrows the other panes. */
import type { DiffSummaryOutput } from "../api/reviewTypes";
import type { CatalogOutput } from "../api/types";
import { kindOf } from "../kit/kinds";
import { Loading, type Loaded } from "../kit/load";
import { Plain } from "../kit/Plain";
import { text } from "../text/review";
import { readKey, sumOf, totalOf } from "./change";
import { Counts } from "./Counts";
import type { DiffParams } from "./DiffView";

interface Props {
  summary: Loaded<DiffSummaryOutput>;
  catalog: CatalogOutput | undefined;
  params: DiffParams;
  onParams(change: DiffParams): void;
  selected: string | null;
  viewed: number;
  goneEdges: number;
  narrow: boolean;
}

export function TypesPane({ summary, narrow, ...rest }: Props) {
  return (
    <section class="card types-pane" {...(narrow ? { role: "tabpanel", id: "panel-types", "aria-labelledby": "tab-types" } : { "aria-label": text.diff.typesPane })}>
      <Loading of={summary}>{(value) => <Types summary={value} {...rest} />}</Loading>
    </section>
  );
}

function Types({ summary, catalog, params, onParams, selected, viewed, goneEdges }: Omit<Props, "summary" | "narrow"> & { summary: DiffSummaryOutput }) {
  const total = totalOf(summary.tables);
  const choose = (key: string) => onParams({ type: key === params.type ? "" : key, row: "", pane: "" });
  const held = selected === null ? null : readKey(selected);
  const tables = Object.entries(summary.tables).filter(([, counts]) => sumOf(counts) > 0);
  return (
    <>
      <button type="button" class="type-item" aria-pressed={params.type === undefined} onClick={() => onParams({ type: "", row: "", pane: "" })}>
        <strong class="grow">{text.diff.allTypes}</strong>
        <Counts counts={total} />
      </button>
      {(["node", "edge"] as const).map((kind) => {
        const own = tables.filter(([key]) => key.startsWith(`${kind}:`)).sort(([a], [b]) => (a < b ? -1 : 1));
        return own.length === 0 ? null : (
          <div key={kind}>
            <h3 class="muted">{kind === "node" ? text.diff.nodes : text.diff.edges}</h3>
            {own.map(([key, counts]) => {
              const name = key.slice(kind.length + 1);
              return (
                <button type="button" class={`type-item kind-${kindOf(catalog, name)}`} key={key} aria-pressed={params.type === key} data-held={held?.kind === kind && held.type === name ? "" : undefined} onClick={() => choose(key)}>
                  <span class={kind === "node" ? "chip-dot" : "edge-dash"} />
                  <span class="grow cut">{name}</span>
                  <Counts counts={counts} />
                </button>
              );
            })}
          </div>
        );
      })}
      {summary.schema_steps.length === 0 ? null : (
        <div class="schema-steps">
          <h3 class="muted">{text.diff.schemaSteps(summary.schema_steps.length)}</h3>
          <ul>
            {summary.schema_steps.map((step, index) => (
              <li key={index}>
                <Plain text={step} />
              </li>
            ))}
          </ul>
        </div>
      )}
      <div class="pane-foot">
        {goneEdges === 0 ? null : (
          <label class="tick">
            <input type="checkbox" checked={params.edges === "hide"} onChange={(event) => onParams({ edges: event.currentTarget.checked ? "hide" : "" })} />
            <span>
              {text.diff.hideEdges} <span class="muted number">({goneEdges.toLocaleString()})</span>
            </span>
          </label>
        )}
        <span class="muted small number">{text.diff.viewedOf(Math.min(viewed, sumOf(total)), sumOf(total))}</span>
        <progress class="viewed-bar" max={Math.max(1, sumOf(total))} value={Math.min(viewed, sumOf(total))} aria-label={text.diff.viewed} />
      </div>
    </>
  );
}

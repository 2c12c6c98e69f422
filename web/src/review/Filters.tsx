/** The filters of the rows: operation, property, actor and text. They are in the link. */
import { useEffect, useState } from "preact/hooks";

import type { DiffSummaryOutput } from "../api/reviewTypes";
import type { CatalogOutput } from "../api/types";
import { Icon } from "../kit/Icon";
import { useLoad } from "../kit/load";
import { text } from "../text/review";
import { OPS, SIGNS, sumOf } from "./change";
import type { DiffParams } from "./DiffView";
import type { DiffReader } from "./reader";

const PAUSE_MS = 250;

interface Props {
  reader: DiffReader;
  catalog: CatalogOutput | undefined;
  params: DiffParams;
  onParams(change: DiffParams): void;
  summary: DiffSummaryOutput;
}

export function Filters({ reader, catalog, params, onParams, summary }: Props) {
  const actors = useLoad(reader.actors === undefined ? null : reader.key, (signal) => reader.actors?.(signal) ?? Promise.resolve([]));
  const properties = changedTypes(catalog, summary, params.type);
  const filtered = ["op", "property", "actor", "find"].some((name) => params[name as keyof DiffParams] !== undefined);
  const known = actors.value ?? [];
  return (
    <div class="diff-filters" role="group" aria-label={text.diff.filters}>
      <div class="segmented" role="radiogroup" aria-label={text.diff.operation}>
        {["", ...OPS].map((op) => (
          <label key={op} class={`op ${op}`} title={op === "" ? undefined : text.ops[op as (typeof OPS)[number]]}>
            <input type="radio" name="op" checked={(params.op ?? "") === op} onChange={() => onParams({ op, row: "" })} aria-label={op === "" ? text.diff.anyOperation : text.ops[op as (typeof OPS)[number]]} />
            {op === "" ? text.diff.anyOperation : SIGNS[op as (typeof OPS)[number]]}
          </label>
        ))}
      </div>
      <select class="select" aria-label={text.diff.property} value={params.property ?? ""} onChange={(event) => onParams({ property: event.currentTarget.value })}>
        <option value="">{text.diff.anyProperty}</option>
        {[...new Set([...properties, ...(params.property === undefined ? [] : [params.property])])].map((name) => (
          <option value={name} key={name}>
            {name}
          </option>
        ))}
      </select>
      {known.length < 2 && params.actor === undefined ? null : (
        <select class="select" aria-label={text.diff.actor} value={params.actor ?? ""} onChange={(event) => onParams({ actor: event.currentTarget.value })}>
          <option value="">{text.diff.anyActor}</option>
          {[...new Set([...known, ...(params.actor === undefined ? [] : [params.actor])])].map((name) => (
            <option value={name} key={name}>
              {name}
            </option>
          ))}
        </select>
      )}
      <FindField value={params.find ?? ""} onFind={(find) => onParams({ find })} />
      {filtered ? (
        <button type="button" class="button small" onClick={() => onParams({ op: "", property: "", actor: "", find: "" })}>
          {text.diff.clear}
        </button>
      ) : null}
    </div>
  );
}

/** A text field that passes its text on after a pause. */
function FindField({ value, onFind }: { value: string; onFind(find: string): void }) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed === value) return undefined;
    const timer = setTimeout(() => onFind(typed), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <span class="searchbox find">
      <Icon name="search" />
      <input class="input" type="search" autoComplete="off" aria-label={text.diff.find} placeholder={text.diff.find} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
    </span>
  );
}

/** Returns the properties of the types with changes, by name. */
function changedTypes(catalog: CatalogOutput | undefined, summary: DiffSummaryOutput, type: string | undefined): string[] {
  const names = new Set<string>();
  for (const [kind, types] of [["node", catalog?.nodes], ["edge", catalog?.edges]] as const) {
    for (const each of types ?? []) {
      const key = `${kind}:${each.name}`;
      const counts = summary.tables[key];
      if (counts === undefined || sumOf(counts) === 0 || (type !== undefined && type !== key)) continue;
      for (const property of each.properties) names.add(property.name);
    }
  }
  return [...names].sort();
}

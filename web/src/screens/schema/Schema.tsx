/** The schema: a picture and a list of its types, the text, one type in detail, changes, and a comparison of two refs. */
import { useMemo, useState } from "preact/hooks";

import type { CatalogOutput } from "../../api/types";
import { Loading, Skeleton, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { schemaText as readText } from "../../source/schema";
import type { Place } from "../../source/source";
import { place, source } from "../../state/context";
import { href, link, replace } from "../../state/location";
import { schemaText as text } from "../../text/schema";
import { SchemaTextPane } from "./Change";
import { compareCatalogs, countMarks, type ComparedType } from "./compare";
import { SchemaPicture } from "./Picture";
import { TypeList } from "./TypeList";
import { TypePanel } from "./TypePanel";

export default function Schema() {
  const here = place.value;
  const other = link.value.params["with"];
  const key = here === null ? null : JSON.stringify([here.graph, here.commit, other]);
  const loaded = useLoad(key, async (signal) => {
    const [after, before] = await Promise.all([source.catalog(here as Place, signal), other === undefined ? null : otherCatalog((here as Place).graph, other, signal)]);
    return { after, before };
  });
  if (here === null) return <Skeleton />;
  return (
    <div class="schema">
      <h1 class="visually-hidden">{text.title}</h1>
      <Loading of={loaded}>{({ after, before }) => <SchemaView here={here} after={after} before={before} other={other ?? null} />}</Loading>
    </div>
  );
}

async function otherCatalog(graph: string, ref: string, signal: AbortSignal): Promise<CatalogOutput> {
  return source.catalog(await source.resolve(graph, ref, signal), signal);
}

function SchemaView({ here, after, before, other }: { here: Place; after: CatalogOutput; before: CatalogOutput | null; other: string | null }) {
  const types = useMemo(() => compareCatalogs(after, before), [after, before]);
  const rows = useMemo(() => new Map(here.snapshot.tables.map((table) => [table.table_key, table.row_count])), [here]);
  const rowsOf = (table: string): number | null => rows.get(table) ?? null;
  const selected = types.find((each) => each.type.name === link.value.path[0]) ?? null;
  const { values: _, ...others } = link.value.params;
  const hrefOf = (name: string): string => href({ path: [name], params: others });
  const shared = { types, rowsOf, selected: selected?.type.name ?? null, hrefOf };
  return (
    <>
      <div class="stack">
        <section class="card" aria-label={text.picture}>
          <header>
            <h2>{text.title}</h2>
            <Compare here={here} types={types} other={other} />
          </header>
          {types.length === 0 ? <p class="empty">{text.empty}</p> : <SchemaPicture {...shared} />}
        </section>
        <section class="card schema-types" aria-label={text.types}>
          <TypeList {...shared} />
        </section>
      </div>
      {selected === null ? (
        <TextPane here={here} />
      ) : (
        <TypePanel
          key={`${selected.kind} ${selected.type.name}`}
          here={here}
          compared={selected}
          rows={selected.kind === "interface" ? null : rowsOf(`${selected.kind}:${selected.type.name}`)}
          implementers={selected.kind === "interface" ? after.nodes.filter((each) => each.implements?.includes(selected.type.name) === true).map((each) => each.name) : []}
        />
      )}
    </>
  );
}

function TextPane({ here }: { here: Place }) {
  const loaded = useLoad(`${here.graph} ${here.commit}`, (signal) => readText(here, signal));
  return <Loading of={loaded}>{(schema) => <SchemaTextPane here={here} source={schema} />}</Loading>;
}

function Compare({ here, types, other }: { here: Place; types: readonly ComparedType[]; other: string | null }) {
  const [typed, setTyped] = useState(other ?? "");
  const branches = useLoad(here.graph, (signal) => source.branches(here.graph, signal)).value ?? [];
  const { with: _, ...others } = link.value.params;
  if (other !== null) {
    const marks = countMarks(types);
    const differing = types.length - marks.same;
    return (
      <div class="row wrap">
        <span class="muted">
          <Plain text={differing === 0 ? text.compare.equal(other) : text.compare.differs(other, differing)} />
        </span>
        {(["added", "removed", "renamed", "changed"] as const).map((mark) =>
          marks[mark] === 0 ? null : (
            <span class={`badge ${{ added: "good", removed: "bad", renamed: "warn", changed: "warn" }[mark]}`} key={mark}>
              {`${marks[mark]} ${text.marks[mark]}`}
            </span>
          ),
        )}
        <button type="button" class="button small" onClick={() => replace({ params: others })}>
          {text.compare.stop}
        </button>
      </div>
    );
  }
  return (
    <form
      class="row compare-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (typed.trim() !== "") replace({ params: { ...others, with: typed.trim() } });
      }}
    >
      <input class="input" type="text" list="schema-branches" aria-label={text.compare.label} placeholder={text.compare.placeholder} title={text.compare.label} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      <datalist id="schema-branches">
        {branches
          .filter((name) => name !== here.ref)
          .map((name) => (
            <option value={name} key={name} />
          ))}
      </datalist>
      <button type="submit" class="button small" disabled={typed.trim() === ""}>
        {text.compare.go}
      </button>
    </form>
  );
}

/** The map: the vectors of a property as points, `map?of=<Type>.<property>&by=<property>&q=<question>`. */
import { useMemo, useState } from "preact/hooks";

import { ARROW } from "../../api/client";
import type { CatalogOutput } from "../../api/types";
import { copyText } from "../../kit/announce";
import { kindOf } from "../../kit/kinds";
import { Loading, Skeleton, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { valueText } from "../../kit/Value";
import type { Place } from "../../source/source";
import { place, source } from "../../state/context";
import { href, link, replace } from "../../state/location";
import { mapText as words } from "../../text/map";
import { Cloud } from "./Cloud";
import { colouring, groupsOf, pointsOf, type Groups, type Points } from "./points";

const LISTED_MAX = 200;
const HITS = 10;

interface Vectors {
  readonly type: string;
  readonly property: string;
}

/** The vectors of all node types. */
function vectorsOf(catalog: CatalogOutput): Vectors[] {
  return catalog.nodes.flatMap(({ name, properties }) => properties.filter((each) => each.type.startsWith("Vector")).map((each) => ({ type: name, property: each.name })));
}

const setParams = (change: Readonly<Record<string, string>>) => replace({ params: { ...link.value.params, ...change } });

export default function Map() {
  const here = place.value;
  const catalog = useLoad(here === null ? null : `${here.graph} ${here.commit}`, (signal) => source.catalog(here as Place, signal));
  if (here === null) return <Skeleton />;
  return (
    <>
      <h1 class="visually-hidden">{words.title}</h1>
      <Loading of={catalog}>{(value) => <Chosen here={here} catalog={value} />}</Loading>
    </>
  );
}

function Chosen({ here, catalog }: { here: Place; catalog: CatalogOutput }) {
  const { params } = link.value;
  const all = vectorsOf(catalog);
  const chosen = all.find((each) => `${each.type}.${each.property}` === params["of"]) ?? all[0];
  if (chosen === undefined) {
    return (
      <div class="card empty">
        <strong>{words.none}</strong>
        <span>
          {words.noneHint} <code>meaning: Vector(384)? @embed("text")</code>
        </span>
      </div>
    );
  }
  const colours = colouring(catalog, chosen.type);
  const by = colours.find((each) => each.name === params["by"]);
  return (
    <div class="map stack">
      <form
        class="card row wrap map-head"
        onSubmit={(event) => {
          event.preventDefault();
          setParams({ q: (event.currentTarget.elements.namedItem("q") as HTMLInputElement).value.trim() });
        }}
      >
        <label class="row">
          {words.vectors}
          <select class="select" value={`${chosen.type}.${chosen.property}`} onChange={(event) => replace({ params: { of: event.currentTarget.value } })}>
            {all.map((each) => (
              <option key={`${each.type}.${each.property}`}>{`${each.type}.${each.property}`}</option>
            ))}
          </select>
        </label>
        <label class="row">
          {words.colour}
          <select class="select" value={by?.name ?? ""} onChange={(event) => setParams({ by: event.currentTarget.value })}>
            <option value="">{words.noColour}</option>
            {colours.map((each) => (
              <option key={each.name}>{each.name}</option>
            ))}
          </select>
        </label>
        <input class="input grow" name="q" type="search" key={params["q"]} defaultValue={params["q"] ?? ""} aria-label={words.search} placeholder={words.searchHint} />
        <button type="submit" class="button">
          {words.find}
        </button>
      </form>
      <Points here={here} catalog={catalog} chosen={chosen} by={by?.name} />
    </div>
  );
}

interface Shown {
  readonly points: Points;
  readonly names: readonly string[];
  readonly values: readonly (string | null)[];
}

/** Reads the points, their names, and the values that colour them. */
async function load(here: Place, catalog: CatalogOutput, { type, property }: Vectors, by: string | undefined, signal: AbortSignal): Promise<Shown> {
  const declared = catalog.nodes.find((each) => each.name === type)?.properties ?? [];
  const named = ["name", "title", "label"].find((name) => declared.some((each) => each.name === name && each.type.startsWith("String")));
  const columns = ["id($x) as node", ...(named === undefined ? [] : [`$x.${named} as name`]), ...(by === undefined ? [] : [`$x.${by} as value`])];
  const request = { text: `query map() { match { $x: ${type} } return { ${columns.join(", ")} } }`, name: null, params: {} };
  const [answer, rows, { readTable }] = await Promise.all([
    source.open(here.graph, "projection", { params: { type, property, at: here.commit }, accept: ARROW, signal }),
    columns.length === 1 ? null : source.query(here, request, null, signal),
    import("../../api/arrow"),
  ]);
  const points = pointsOf(readTable(await answer.arrayBuffer()));
  const rowOf: Record<string, number> = Object.create(null) as Record<string, number>;
  for (let row = 0; row < (rows?.rowCount ?? 0); row += 1) rowOf[String(rows?.cell(0, row))] = row;
  const cell = (id: string, column: number): string | null => {
    const found = rows?.cell(column, rowOf[id] ?? -1) ?? null;
    return found === null ? null : valueText(found);
  };
  return {
    points,
    names: points.ids.map((id) => (named === undefined ? null : cell(id, 1)) || id),
    values: points.ids.map((id) => (by === undefined ? null : cell(id, columns.length - 1))),
  };
}

function Points({ here, catalog, chosen, by }: { here: Place; catalog: CatalogOutput; chosen: Vectors; by: string | undefined }) {
  const loaded = useLoad(JSON.stringify([here.graph, here.commit, chosen, by]), (signal) => load(here, catalog, chosen, by, signal));
  return <Loading of={loaded}>{(shown) => (shown.points.ids.length === 0 ? <p class="card empty">{words.noPoints}</p> : <MapView here={here} catalog={catalog} type={chosen.type} by={by} shown={shown} />)}</Loading>;
}

function MapView({ here, catalog, type, by, shown }: { here: Place; catalog: CatalogOutput; type: string; by: string | undefined; shown: Shown }) {
  const { points, names, values } = shown;
  const question = link.value.params["q"] ?? "";
  const [selection, setSelection] = useState<{ of: Points; indexes: readonly number[] }>({ of: points, indexes: [] });
  const chosen = selection.of === points ? selection.indexes : [];
  const selected = useMemo(() => new Set(chosen), [chosen]);
  const select = (indexes: readonly number[]) => setSelection({ of: points, indexes });
  const groups = useMemo((): Groups => {
    const property = colouring(catalog, type).find((each) => each.name === by);
    if (property !== undefined) return groupsOf(values, property, { none: words.missing, others: words.others });
    return { names: [], of: new Uint8Array(points.ids.length).fill(kindOf(catalog, type)) };
  }, [shown]);
  const search = useLoad(question === "" ? null : JSON.stringify([here.commit, type, question]), (signal) =>
    source.search(here, { text: question, types: [type], by: "meaning", limit: HITS }, signal),
  );
  const hits = useMemo(() => {
    const found = new Set(question === "" ? [] : search.value?.hits.map((hit) => hit.id));
    return points.ids.flatMap((id, index) => (found.has(id) ? [index] : []));
  }, [search.value, points, question]);
  const listed = chosen.length > 0 ? chosen : hits.length > 0 ? hits : points.ids.map((_, index) => index);
  const group = (index: number) => groups.names[groups.of[index] ?? 0];
  const name = (index: number) => [names[index] ?? "", group(index)].filter((part) => part !== undefined).join(" · ");
  return (
    <section class="card">
      <div class="row wrap legend" role="group" aria-label={words.groups}>
        {groups.names.map((each, at) => {
          const own = points.ids.flatMap((_, index) => (groups.of[index] === at ? [index] : []));
          return (
            <button type="button" class={`chip kind-${at}`} key={each} aria-pressed={own.length > 0 && own.every((index) => selected.has(index))} onClick={() => select(own)}>
              <span class="dot" />
              <span class="cut">
                <Plain text={each} />
              </span>
              <span class="muted number">{own.length.toLocaleString()}</span>
            </button>
          );
        })}
        <span class="muted small" role="status">
          {question === "" || search.value === undefined ? words.shown(points.ids.length, points.total) : hits.length > 0 ? words.cross(hits.length) : words.noHit}
        </span>
      </div>
      <div class="picture">
        <Cloud points={points} groups={groups} selected={selected} hits={hits} label={words.sentence(points.ids.length, type)} name={name} onSelect={select} />
        <div class="picture-list">
          <div class="chosen row wrap" aria-live="polite">
            {chosen.length === 0 ? (
              <span class="muted">{words.shown(listed.length, listed.length)}</span>
            ) : (
              <>
                <strong>{words.selected(chosen.length)}</strong>
                <button type="button" class="button small" onClick={() => void copyText(chosen.map((index) => points.ids[index]).join("\n"))}>
                  {words.copyIds}
                </button>
                <button type="button" class="button small" onClick={() => select([])}>
                  {words.clear}
                </button>
              </>
            )}
          </div>
          <ul class="list" aria-label={words.list} tabIndex={0}>
            {listed.slice(0, LISTED_MAX).map((index) => (
              <li key={points.ids[index]}>
                <a class={`item kind-${groups.of[index] ?? 0}`} href={href({ screen: "entity", path: [type, points.ids[index] ?? ""], params: {} })}>
                  <span class="chip-dot" />
                  <span class="grow cut">
                    <Plain text={names[index] ?? ""} />
                  </span>
                  <span class="muted small cut">
                    <Plain text={group(index) ?? ""} />
                  </span>
                </a>
              </li>
            ))}
          </ul>
          {listed.length > LISTED_MAX ? <p class="muted small pad">{words.cut(LISTED_MAX, listed.length)}</p> : null}
        </div>
      </div>
    </section>
  );
}

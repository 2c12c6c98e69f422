/** The page of a node: its properties with the commit that set each, its neighbours, a picture, and its history. */
import { useMemo, useRef, useState } from "preact/hooks";

import type { CatalogOutput, EntityOutput, NeighborListOutput, NeighborOutput, PropertyBlameOutput, RowVersionOutput } from "../../api/types";
import { kindOf } from "../../kit/kinds";
import { Loading, Skeleton, useLoad, type Loaded } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { Time } from "../../kit/Time";
import { nodeLabel, Value } from "../../kit/Value";
import { NODES_MORE, PictureBuilder } from "../../picture/build";
import { addExpansion, addNeighbors, expansionNote, useExpansion } from "../../picture/expansion";
import { Picture } from "../../picture/Picture";
import type { Place } from "../../source/source";
import { place, source } from "../../state/context";
import { go, href, link } from "../../state/location";
import { text } from "../../text/en";
import { entityText } from "../../text/entity";
import { versionText } from "../../text/versions";
import { BlameDialog } from "./Blame";
import { BlobValue } from "./BlobValue";
import { EditDialog, editable } from "./EditDialog";
import { Ends } from "./Ends";
import { History } from "./History";
import { PathFrom, walkFrom } from "./PathFrom";
import { Similar, vectorOf } from "./Similar";
import { TimeSlider } from "./TimeSlider";
import { versionAt, versionOf } from "./versions";

const FIRST = 50;
const VERSIONS = 200;

export default function Entity() {
  const here = place.value;
  const [type = "", id = ""] = link.value.path;
  const at = link.value.params["at"];
  const shown = here === null || at === undefined ? here : { ...here, commit: at };
  const key = shown === null ? null : JSON.stringify([shown.graph, shown.commit, type, id]);
  const loaded = useLoad(key, (signal) => source.entity(shown as Place, type, id, signal));
  const catalog = useLoad(shown === null ? null : `${shown.graph} ${shown.commit}`, (signal) => source.catalog(shown as Place, signal)).value;
  const versions = useLoad(here === null ? null : JSON.stringify([here.graph, here.commit, type, id]), (signal) => source.entityHistory(here as Place, type, id, VERSIONS, undefined, signal));
  const entity = useKept(`${type} ${id}`, loaded.value);
  if (shown === null) return <Skeleton />;
  const changes = versions.value?.changes ?? [];
  const version = versionOf(changes, versionAt(changes, at));
  const problem = loaded.problem;
  return (
    <div class="stack">
      {problem === undefined && entity !== undefined ? (
        <EntityView here={shown} entity={entity} catalog={catalog} changes={changes} version={version} key={`${type} ${id}`} />
      ) : (
        <div class="stack">
          <h1 class="visually-hidden">{`${type} ${id}`}</h1>
          <TimeSlider changes={changes} at={at} />
          {problem?.status === 404 && version?.op === "delete" ? (
            <p class="card empty">
              <Plain text={versionText.deletedNow(type, id)} />
            </p>
          ) : (
            <Loading of={loaded}>{() => null}</Loading>
          )}
        </div>
      )}
      {problem !== undefined && versions.problem !== undefined ? null : <History loaded={versions} />}
    </div>
  );
}

/** Keeps the last value of a key while the next one is on its way, so that a step in time does not blank the page. */
function useKept<T>(key: string, value: T | undefined): T | undefined {
  const kept = useRef<{ key: string; value: T } | null>(null);
  if (value !== undefined) kept.current = { key, value };
  return value ?? (kept.current?.key === key ? kept.current.value : undefined);
}

interface ViewProps {
  here: Place;
  entity: EntityOutput;
  catalog: CatalogOutput | undefined;
  changes: readonly RowVersionOutput[];
  /** The version that is shown. */
  version: RowVersionOutput | undefined;
}

function EntityView({ here, entity, catalog, changes, version }: ViewProps) {
  const label = nodeLabel(entity.data, entity.id);
  const { params } = link.value;
  const at = params["at"];
  const edge = params["edge"];
  const direction = params["direction"];
  const [extra, setExtra] = useState<{ key: string; pages: readonly NeighborListOutput[] }>({ key: "", pages: [] });
  const key = JSON.stringify([here.commit, entity.type, entity.id, edge, direction]);
  const edgeType = catalog?.edges.find((each) => each.name === entity.type);
  const [editing, setEditing] = useState(false);
  const first = useLoad(catalog === undefined || edgeType !== undefined ? null : key, (signal) => source.neighbors(here, entity.type, entity.id, { edge, direction, limit: FIRST }, signal));
  const pages = [...(first.value === undefined ? [] : [first.value]), ...(extra.key === key ? extra.pages : [])];
  const neighbors = pages.flatMap((page) => page.neighbors);
  const next = pages.at(-1)?.next;
  const vector = vectorOf(entity, catalog);
  const more = async () => {
    const page = await source.neighbors(here, entity.type, entity.id, { edge, direction, limit: FIRST, after: next });
    setExtra({ key, pages: [...(extra.key === key ? extra.pages : []), page] });
  };
  return (
    <div class={`stack kind-${kindOf(catalog, entity.type)}`}>
      <header class="entity-head">
        <a class="chip" href={href({ screen: "query", path: [], params: { type: entity.type } })} title={text.entity.queryThis}>
          <span class="dot" />
          {entity.type}
        </a>
        <h1>
          <Plain text={label} />
        </h1>
        <code class="muted cut">{entity.id}</code>
        <span class="grow" />
        <TimeSlider changes={changes} at={at} />
        {at !== undefined || catalog === undefined || editable(entity, catalog).length === 0 ? null : (
          <button type="button" class="button small" onClick={() => setEditing(true)}>
            {entityText.edit}
          </button>
        )}
        {editing && catalog !== undefined ? <EditDialog here={here} entity={entity} catalog={catalog} label={label} onClose={() => setEditing(false)} /> : null}
      </header>
      <PathFrom here={here} type={entity.type} id={entity.id} />
      <div class="entity">
        <Properties here={here} entity={entity} catalog={catalog} changes={changes} version={version} />
        {edgeType !== undefined && catalog !== undefined ? (
          <Ends here={here} edge={entity} declared={edgeType} catalog={catalog} />
        ) : (
          <>
            <Neighbors entity={entity} catalog={catalog} loaded={first} neighbors={neighbors} more={next === undefined ? undefined : () => void more()} label={label} />
            <EntityPicture here={here} entity={entity} catalog={catalog} neighbors={neighbors} label={label} />
          </>
        )}
      </div>
      {vector === null ? null : <Similar here={here} entity={entity} vector={vector} />}
    </div>
  );
}

function Properties({ here, entity, catalog, changes, version }: ViewProps) {
  const [shown, setShown] = useState<PropertyBlameOutput | null>(null);
  const declared = catalog?.nodes.find((each) => each.name === entity.type) ?? catalog?.edges.find((each) => each.name === entity.type);
  const names = declared?.properties.map((each) => each.name).filter((name) => name in entity.data) ?? [];
  const rest = Object.keys(entity.data).filter((name) => !names.includes(name));
  const isStep = version?.op === "update" && link.value.params["at"] !== undefined;
  return (
    <section class="card">
      <header>
        <h2>{text.entity.properties}</h2>
      </header>
      <dl class="properties">
        {[...names, ...rest].map((name) => {
          const blame = entity.blame?.find((each) => each.property === name);
          const described = declared?.properties.find((each) => each.name === name);
          return (
            <div class="property" key={name} data-changed={isStep && version.properties.includes(name) ? "" : undefined}>
              <dt title={described?.description ?? described?.type}>
                {name}
                {isStep && version.properties.includes(name) ? <span class="badge warn" title={versionText.changedHere}>~</span> : null}
                {declared?.key.includes(name) === true ? <span class="badge">{text.entity.key}</span> : null}
              </dt>
              <dd>
                {described?.type.startsWith("Blob") === true && entity.data[name] !== null ? <BlobValue here={here} type={entity.type} id={entity.id} property={name} /> : <Value value={entity.data[name]} full />}
                {blame === undefined ? null : (
                  <button type="button" class="blame" title={text.entity.setBy(blame.actor_id ?? text.entity.unknownActor)} onClick={() => setShown(blame)}>
                    <Plain text={blame.actor_id ?? text.entity.unknownActor} /> · <Time at={blame.created_at} />
                  </button>
                )}
              </dd>
            </div>
          );
        })}
      </dl>
      {shown === null ? null : <BlameDialog blame={shown} entity={entity} type={declared} changes={changes} onClose={() => setShown(null)} />}
    </section>
  );
}

/** The address of a neighbour; the walk remembers where it began. */
const stepHref = (entity: { type: string; id: string }, type: string, id: string): string =>
  href({ screen: "entity", path: [type, id], params: { from: walkFrom() ?? JSON.stringify([entity.type, entity.id]) } });

interface NeighborsProps {
  entity: EntityOutput;
  catalog: CatalogOutput | undefined;
  loaded: Loaded<NeighborListOutput>;
  neighbors: readonly NeighborOutput[];
  more: (() => void) | undefined;
  label: string;
}

function Neighbors({ entity, catalog, loaded, neighbors, more }: NeighborsProps) {
  const { params } = link.value;
  const degrees = (entity.degrees ?? []).filter((each) => each.count > 0);
  const total = degrees.reduce((sum, each) => sum + each.count, 0);
  const keep = Object.fromEntries(["from", "at"].flatMap((name) => (params[name] === undefined ? [] : [[name, params[name]]]))) as Record<string, string>;
  return (
    <section class="card">
      <header>
        <h2>{text.entity.neighbours}</h2>
      </header>
      <div class="row wrap chips">
        <a class="chip" href={href({ params: keep })} aria-current={params["edge"] === undefined ? "true" : undefined}>
          {text.entity.all(total)}
        </a>
        {degrees.map((each) => {
          const current = params["edge"] === each.edge && params["direction"] === each.direction;
          return (
            <a key={`${each.edge} ${each.direction}`} class="chip" href={href({ params: { ...keep, edge: each.edge, direction: each.direction } })} aria-current={current ? "true" : undefined} title={each.type}>
              {text.entity.edgeOf(each.edge, each.direction, each.count)}
            </a>
          );
        })}
      </div>
      <Loading of={loaded}>
        {() =>
          neighbors.length === 0 ? (
            <p class="empty">{text.entity.none}</p>
          ) : (
            <ul class="list neighbors" tabIndex={0} aria-label={text.entity.neighbours}>
              {neighbors.map((each) => (
                <li key={`${each.edge_id} ${each.direction}`} class="step">
                  <a class="muted small edge" href={href({ path: [each.edge, each.edge_id], params: {} })} title={entityText.edgePage(each.edge)}>
                    {`${each.direction === "out" ? "→" : "←"} ${each.edge}`}
                  </a>
                  <a class={`item kind-${kindOf(catalog, each.type)}`} href={stepHref(entity, each.type, each.id)}>
                    <span class="chip-dot" />
                    <span class="grow cut">
                      <Plain text={nodeLabel(each.data, each.id)} />
                    </span>
                  </a>
                </li>
              ))}
            </ul>
          )
        }
      </Loading>
      {more === undefined ? null : (
        <div class="pad">
          <button type="button" class="button small" onClick={more}>
            {text.entity.more(neighbors.length, loaded.value?.total ?? neighbors.length)}
          </button>
        </div>
      )}
    </section>
  );
}

function EntityPicture({ here, entity, catalog, neighbors, label }: { here: Place; entity: EntityOutput; catalog: CatalogOutput | undefined; neighbors: readonly NeighborOutput[]; label: string }) {
  const expansion = useExpansion(here);
  const expanded = expansionNote(expansion);
  const data = useMemo(() => {
    const builder = new PictureBuilder(catalog, NODES_MORE);
    addNeighbors(builder, builder.node(entity.type, entity.id, label), neighbors);
    addExpansion(builder, expansion);
    return builder.build();
  }, [neighbors.length, neighbors[0]?.edge_id, catalog, entity, expansion.neighborhoods]);
  return (
    <section class="card entity-picture">
      <header>
        <h2>{text.entity.picture}</h2>
      </header>
      <Picture
        data={data}
        label={text.picture.sentence(data.nodes.length, data.src.length, text.entity.what(label))}
        nodeHref={(type, id) => stepHref(entity, type, id)}
        onOpen={(type, id) => go({ screen: "entity", path: [type, id], params: { from: walkFrom() ?? JSON.stringify([entity.type, entity.id]) } })}
        onExpand={expansion.expand}
        {...(expanded === null ? {} : { note: <span role="status">{expanded}</span> })}
        compact
      />
    </section>
  );
}

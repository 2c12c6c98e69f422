/** The home page of a graph: what it holds, its branches, its last commits and its stored queries. */
import type { CatalogOutput, CommitOutput } from "../../api/types";
import { copyText } from "../../kit/announce";
import { Icon } from "../../kit/Icon";
import { kindOf } from "../../kit/kinds";
import { Loading, Skeleton, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { Time } from "../../kit/Time";
import type { Place } from "../../source/source";
import { config, place, source } from "../../state/context";
import { href } from "../../state/location";
import { text } from "../../text/en";
import { findScreen } from "../registry";
import { Branches } from "./Branches";
import { EmptyGraph, IndexLine, LoadButton } from "./Load";
import { HomeProposals } from "./Proposals";

const RECENT = 8;

export default function Home() {
  const here = place.value;
  if (here === null) return <Skeleton />;
  return (
    <div class="home">
      <h1 class="visually-hidden">{text.home.title}</h1>
      <div class="stack">
        <Contents here={here} />
        <Branches here={here} />
      </div>
      <div class="stack">
        <Start here={here} />
        <HomeProposals graph={here.graph} />
        <Recent here={here} />
        <Queries here={here} />
      </div>
    </div>
  );
}

function Contents({ here }: { here: Place }) {
  const catalog = useLoad(`${here.graph} ${here.commit}`, (signal) => source.catalog(here, signal));
  return (
    <section class="card">
      <Loading of={catalog}>
        {(value) => (
          <>
            <ContentsHead here={here} catalog={value} />
            <div class="body stack">
              <Counts here={here} catalog={value} kind="node" />
              <Counts here={here} catalog={value} kind="edge" />
              <IndexLine here={here} />
              {here.snapshot.tables.every((table) => table.row_count === 0) ? <EmptyGraph here={here} catalog={value} /> : null}
            </div>
          </>
        )}
      </Loading>
    </section>
  );
}

function ContentsHead({ here, catalog }: { here: Place; catalog: CatalogOutput }) {
  const total = (kind: string) =>
    here.snapshot.tables.filter((table) => table.table_key.startsWith(kind)).reduce((sum, table) => sum + table.row_count, 0);
  return (
    <header>
      <h2>
        <Plain text={here.graph} />
      </h2>
      <span class="muted number">
        {text.home.nodes(total("node:"))} · {text.home.edges(total("edge:"))} · {text.home.nodeTypes(catalog.nodes.length)} ·{" "}
        {text.home.edgeTypes(catalog.edges.length)}
      </span>
    </header>
  );
}

function Counts({ here, catalog, kind }: { here: Place; catalog: CatalogOutput; kind: "node" | "edge" }) {
  const types = kind === "node" ? catalog.nodes : catalog.edges;
  const opens = kind === "node" && findScreen("query") !== undefined;
  return (
    <div class="stack tight">
      <h3 class="muted">{kind === "node" ? text.home.nodeTypes(types.length) : text.home.edgeTypes(types.length)}</h3>
      <div class="counts">
        {types.map((type) => {
          const rows = here.snapshot.tables.find((table) => table.table_key === `${kind}:${type.name}`)?.row_count ?? 0;
          const inside = (
            <>
              <span class={`row cut kind-${kindOf(catalog, type.name)}`}>
                {kind === "node" ? <span class="chip-dot" /> : null}
                <span class="cut">{type.name}</span>
              </span>
              <span class="muted number">{rows.toLocaleString()}</span>
            </>
          );
          return opens ? (
            <a class="count" key={type.name} title={type.description} href={href({ screen: "query", path: [], params: { type: type.name } })}>
              {inside}
            </a>
          ) : (
            <span class="count" key={type.name} title={type.from === undefined ? type.description : `${type.from} → ${type.to ?? ""}`}>
              {inside}
            </span>
          );
        })}
      </div>
    </div>
  );
}

function Start({ here }: { here: Place }) {
  const python = `import omnigraph as og\n\ngraph = og.open("${here.graph}.omni")`;
  return (
    <section class="card">
      <header>
        <h2>{text.home.start}</h2>
      </header>
      <div class="body row wrap">
        {findScreen("query") === undefined ? null : (
          <a class="button primary" href={href({ screen: "query", path: [], params: {} })}>
            {text.home.newQuery}
          </a>
        )}
        {config.read_only ? null : <LoadButton here={here} />}
        <button type="button" class="button" onClick={() => void copyText(python)}>
          <Icon name="copy" />
          {text.home.openInPython}
        </button>
      </div>
    </section>
  );
}

function Recent({ here }: { here: Place }) {
  const loaded = useLoad(`${here.graph} ${here.commit}`, (signal) => source.commits(here, RECENT, undefined, signal));
  return (
    <section class="card">
      <header>
        <h2>{text.home.recent}</h2>
      </header>
      <Loading of={loaded}>
        {(list) => (
          <ul class="list">
            {list.commits.map((commit) => (
              <li key={commit.graph_commit_id}>
                <CommitRow commit={commit} />
              </li>
            ))}
          </ul>
        )}
      </Loading>
    </section>
  );
}

function CommitRow({ commit }: { commit: CommitOutput }) {
  return (
    <a class="item" href={href({ ref: `@${commit.graph_commit_id}` })}>
      <code class="muted">{commit.graph_commit_id.slice(-6)}</code>
      <span class="grow cut">{commit.message === null ? <span class="muted">{commit.kind}</span> : <Plain text={commit.message} />}</span>
      <span class="muted cut">{commit.actor_id === null ? "" : <Plain text={commit.actor_id} />}</span>
      <Time at={commit.created_at} />
    </a>
  );
}

function Queries({ here }: { here: Place }) {
  const loaded = useLoad(`${here.graph} ${here.commit}`, (signal) => source.storedQueries(here, signal));
  return (
    <section class="card">
      <header>
        <h2>{text.home.queries}</h2>
      </header>
      <Loading of={loaded}>
        {(queries) =>
          queries.length === 0 ? (
            <div class="empty">
              <span>{text.home.noQueries}</span>
              <span class="small">
                {text.home.noQueriesHint} <code>omnigraph queries push FILE.gq</code>
              </span>
            </div>
          ) : (
            <ul class="list">
              {queries.map((query) => (
                <li key={query.name}>
                  <a class="item" href={href({ screen: "query", path: [], params: { name: query.name } })}>
                    <strong>{query.name}</strong>
                    <span class="grow cut muted">{query.description === undefined ? "" : <Plain text={query.description} />}</span>
                  </a>
                </li>
              ))}
            </ul>
          )
        }
      </Loading>
    </section>
  );
}

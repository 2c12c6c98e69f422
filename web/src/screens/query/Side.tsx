/** Stored queries and the history of this browser. */
import { useState } from "preact/hooks";

import { Loading, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { Time } from "../../kit/Time";
import { Panel, Tabs } from "../../kit/Tabs";
import { place, source, written } from "../../state/context";
import { href, link } from "../../state/location";
import { text } from "../../text/en";
import { forgetAll, history, type HistoryEntry } from "./history";
import type { Workspace } from "./workspace";

export function Side({ space }: { space: Workspace }) {
  const [tab, setTab] = useState("stored");
  return (
    <section class="side" aria-label={text.query.stored}>
      <Tabs
        label={text.query.stored}
        tabs={[
          { name: "stored", title: text.query.stored },
          { name: "history", title: text.query.history },
        ]}
        selected={tab}
        onSelect={setTab}
      />
      <Panel name={tab}>{tab === "stored" ? <Stored space={space} /> : <History space={space} />}</Panel>
    </section>
  );
}

function Stored({ space }: { space: Workspace }) {
  const here = place.value;
  const loaded = useLoad(here === null ? null : `${here.graph} ${here.commit} ${written.value}`, (signal) => source.storedQueries(here as NonNullable<typeof here>, signal));
  return (
    <Loading of={loaded}>
      {(queries) =>
        queries.length === 0 ? (
          <p class="empty small">{text.query.noStored}</p>
        ) : (
          <ul class="list">
            {queries.map((query) => (
              <li key={query.name}>
                <a class="item" href={href({ screen: "query", path: [], params: { name: query.name } })} aria-current={query.name === space.storedName.value ? "true" : undefined} title={query.description}>
                  <span class="cut">{query.name}</span>
                  {query.mutation ? <span class="badge warn">change</span> : null}
                </a>
              </li>
            ))}
          </ul>
        )
      }
    </Loading>
  );
}

function History({ space }: { space: Workspace }) {
  const entries = history.value.filter((entry) => entry.graph === link.value.graph);
  if (entries.length === 0) return <p class="empty small">{text.query.noHistory}</p>;
  const choose = (entry: HistoryEntry) => {
    space.storedName.value = null;
    space.chosen.value = entry.name;
    space.values.value = entry.values;
    space.text.value = entry.text;
  };
  return (
    <>
      <ul class="list">
        {entries.map((entry) => (
          <li key={`${entry.at} ${entry.text}`}>
            <button type="button" class="item" title={entry.text.slice(0, 500)} onClick={() => choose(entry)}>
              <span class="grow cut">
                <Plain text={entry.name ?? entry.text.replace(/\s+/g, " ").slice(0, 60)} />
              </span>
              <Time at={entry.at * 1000} />
            </button>
          </li>
        ))}
      </ul>
      <button type="button" class="button plain small" onClick={() => forgetAll(link.value.graph)}>
        {text.query.clear}
      </button>
    </>
  );
}

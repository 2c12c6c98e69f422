/** A picture, its list, the properties of the selected node and the table: the content of a notebook cell or a saved file. */
import { useMemo, useState } from "preact/hooks";

import { problemOf, type Problem } from "../api/problem";
import type { NeighborListOutput, PropertyBlameOutput } from "../api/types";
import { Plain } from "../kit/Plain";
import { ProblemBox } from "../kit/ProblemBox";
import { DataTable } from "../kit/Table";
import { Panel, Tabs } from "../kit/Tabs";
import { Time } from "../kit/Time";
import { Value } from "../kit/Value";
import { Picture } from "../picture/Picture";
import { slicedLayout } from "../picture/runner";
import { text } from "../text/en";
import { shownText as words } from "../text/shown";
import { pictureOfDocument, propertiesOf, tableOfDocument, type Expanded, type ShownDocument } from "./document";

export interface Answers {
  ask<T>(what: string, params: Readonly<Record<string, unknown>>): Promise<T>;
}

interface Props {
  shown: ShownDocument;
  /** Who answers questions; null in a saved file. */
  answers: Answers | null;
  onSelect?(node: { type: string; id: string } | null): void;
}

interface Grown {
  readonly of: ShownDocument;
  readonly expanded: readonly (Expanded & { readonly next?: string | undefined })[];
  readonly rows: readonly (readonly unknown[])[];
}

export function Shown({ shown: given, answers, onSelect }: Props) {
  const [past, setPast] = useState<{ of: ShownDocument; shown: ShownDocument } | null>(null);
  const shown = past !== null && past.of === given ? past.shown : given;
  const [kept, setGrown] = useState<Grown>({ of: shown, expanded: [], rows: [] });
  const grown = kept.of === shown ? kept : { of: shown, expanded: [], rows: [] };
  const [view, setView] = useState(shown.nodes.length > 0 ? "picture" : "table");
  const [chosen, setChosen] = useState<number | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const { data, leftOut } = useMemo(() => pictureOfDocument(shown, grown.expanded), [shown, grown.expanded]);
  const may = (what: string) => answers !== null && shown.asks.includes(what);
  const ask = async <T,>(what: string, params: Readonly<Record<string, unknown>>, use: (answer: T) => void) => {
    if (answers === null) return;
    setProblem(null);
    try {
      use(await answers.ask<T>(what, params));
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  const expand = (type: string, id: string) => {
    const known = grown.expanded.find((each) => each.type === type && each.id === id);
    if (known !== undefined && known.next === undefined) return;
    void ask<NeighborListOutput>("expand", { type, id, after: known?.next ?? null }, (page) => {
      const one = { type, id, neighbors: [...(known?.neighbors ?? []), ...page.neighbors], next: page.next };
      setGrown({ ...grown, expanded: [...grown.expanded.filter((each) => each !== known), one] });
    });
  };
  const more = () => {
    if (!may("page") || shown.table === null) return;
    const start = shown.table.rows.length + grown.rows.length;
    if (start < shown.table.total) void ask<{ rows: unknown[][] }>("page", { start }, ({ rows }) => setGrown({ ...grown, rows: [...grown.rows, ...rows] }));
  };
  const select = (node: number | null) => {
    const found = node === null ? undefined : data.nodes[node];
    setChosen(node);
    onSelect?.(found === undefined ? null : { type: found.type, id: found.id });
  };
  const table = useMemo(() => (shown.table === null ? null : tableOfDocument(shown.table, grown.rows)), [shown, grown.rows]);
  const tabs = [...(shown.nodes.length > 0 ? [{ name: "picture", title: words.picture }] : []), ...(table === null ? [] : [{ name: "table", title: words.table }])];
  const node = chosen === null ? undefined : data.nodes[chosen];
  const total = data.nodes.length + leftOut;
  return (
    <div class="shown card">
      <Tabs label={words.views} tabs={tabs} selected={view} onSelect={setView}>
        <span class="row wrap summary">
          <strong class="cut">
            <Plain text={shown.title} />
          </strong>
          {table === null ? null : <span class="muted">{words.rows(shown.table?.total ?? 0)}</span>}
          {may("as_of") ? <AsOf onShow={(at) => void ask<ShownDocument>("as_of", { at }, (next) => setPast({ of: given, shown: next }))} /> : null}
        </span>
      </Tabs>
      {shown.notice === null ? null : <p class="notice">{shown.notice}</p>}
      {problem === null ? null : <ProblemBox problem={problem} />}
      <Panel name={view} class="fill">
        {view === "picture" && shown.nodes.length > 0 ? (
          <Picture
            data={data}
            label={text.picture.sentence(data.nodes.length, data.src.length, shown.title)}
            onOpen={() => undefined}
            picked={chosen === null ? [] : [chosen]}
            onPicked={select}
            layout={slicedLayout}
            {...(may("expand") ? { onExpand: expand } : {})}
            {...(leftOut > 0 ? { note: words.left(data.nodes.length, total) } : {})}
          />
        ) : table === null ? (
          <p class="empty">{words.none}</p>
        ) : (
          <DataTable table={table} label={words.table} onEnd={more} />
        )}
      </Panel>
      {node === undefined || view !== "picture" ? null : (
        <Properties key={`${node.type} ${node.id}`} type={node.type} id={node.id} data={propertiesOf(shown, grown.expanded, node.type, node.id)} why={may("why") ? answers : null} />
      )}
    </div>
  );
}

function AsOf({ onShow }: { onShow(at: string): void }) {
  const [at, setAt] = useState("");
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        onShow(at);
      }}
    >
      <input class="input small" aria-label={words.asOf} placeholder={`${words.asOf}: ${words.asOfHelp}`} value={at} onInput={(event) => setAt(event.currentTarget.value)} />
      <button type="submit" class="button small">
        {words.show}
      </button>
    </form>
  );
}

function Properties({ type, id, data, why }: { type: string; id: string; data: Readonly<Record<string, unknown>> | null; why: Answers | null }) {
  const [blame, setBlame] = useState<readonly PropertyBlameOutput[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  return (
    <section class="shown-properties" aria-label={words.properties}>
      <dl class="dl">
        {Object.entries(data ?? { id }).map(([name, value]) => (
          <>
            <dt key={`${name} name`}>{name}</dt>
            <dd key={name}>
              <Value value={value} full />
              {blame === null ? null : <By blame={blame.find((each) => each.property === name)} />}
            </dd>
          </>
        ))}
      </dl>
      {why === null || blame !== null ? null : (
        <button type="button" class="button small" onClick={() => void why.ask<{ blame: PropertyBlameOutput[] }>("why", { type, id }).then((answer) => setBlame(answer.blame), (error: unknown) => setProblem(problemOf(error)))}>
          {words.why}
        </button>
      )}
      {problem === null ? null : <ProblemBox problem={problem} />}
    </section>
  );
}

function By({ blame }: { blame: PropertyBlameOutput | undefined }) {
  if (blame === undefined) return null;
  return (
    <span class="muted small">
      {" "}
      <Plain text={[blame.actor_id ?? text.entity.unknownActor, blame.message ?? ""].filter((each) => each !== "").join(" · ")} /> · <Time at={blame.created_at} />
    </span>
  );
}

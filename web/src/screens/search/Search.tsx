/**
 * The search page: one field over all types, hits with the words that matched and their ranks by each ranker.
 *
 * The link holds everything: the text, the settings of the side A and, in a comparison, of the side B, the hit whose rank
 * is explained, and the node whose absence is explained.
 */
import { useEffect, useState } from "preact/hooks";

import { problemOf, type Problem } from "../../api/problem";
import type { CatalogOutput, SearchOutput } from "../../api/types";
import { Skeleton, useLoad } from "../../kit/load";
import { ProblemBox } from "../../kit/ProblemBox";
import type { Place, SearchRequest } from "../../source/source";
import { place, source } from "../../state/context";
import { go, link } from "../../state/location";
import { words } from "../../text/search";
import { Hits, type Against } from "./Hits";
import { SaveTest } from "./SaveTest";
import { SearchForm, SettingsForm } from "./SearchForm";
import { paramsOf, requestOf, settingsOf, type Settings, type Side } from "./settings";
import { WhyNot } from "./WhyNot";

const PAGE = 20;

export default function Search() {
  const here = place.value;
  const { params } = link.value;
  const text = params["q"] ?? "";
  const compared = params["ab"] !== undefined;
  const a = settingsOf(params, "a");
  const b = settingsOf(params, "b");
  const catalog = useLoad(here === null ? null : `${here.graph} ${here.commit}`, (signal) => source.catalog(here as Place, signal)).value;
  const requestA = requestOf(text, a, catalog, PAGE);
  const requestB = requestOf(text, b, catalog, PAGE);
  const ready = catalog === undefined ? null : here;
  const foundA = useSearch(ready, requestA);
  const foundB = useSearch(compared ? ready : null, requestB);
  const [saving, setSaving] = useState(false);
  if (here === null) return <Skeleton />;
  const change = (side: Side, settings: Settings) => go({ params: { ...params, ...paramsOf(settings, side) } });
  const sides = { a: { settings: a, found: foundA }, ...(compared ? { b: { settings: b, found: foundB } } : {}) };
  return (
    <div class={compared ? "stack search-page compared" : "stack search-page"}>
      <h1 class="visually-hidden">{words.title}</h1>
      <SearchForm text={text} settings={a} catalog={catalog} key={text} whole={!compared} onChange={(settings) => change("a", settings)} />
      {text === "" ? (
        <Start />
      ) : (
        <>
          <Tools compared={compared} a={a} onSave={() => setSaving(true)} />
          <WhyNot here={here} request={requestA} />
          <div class={compared ? "sides" : "stack"}>
            <SideView side="a" text={text} request={requestA} settings={a} found={foundA} catalog={catalog} here={here} against={against(compared, "a", foundB.answer)} onChange={(settings) => change("a", settings)} />
            {compared ? <SideView side="b" text={text} request={requestB} settings={b} found={foundB} catalog={catalog} here={here} against={against(compared, "b", foundA.answer)} onChange={(settings) => change("b", settings)} /> : null}
          </div>
          {saving && catalog !== undefined ? <SaveTest here={here} text={text} catalog={catalog} sides={sides} onClose={() => setSaving(false)} /> : null}
        </>
      )}
    </div>
  );
}

function Start() {
  return (
    <div class="card empty">
      <strong>{words.start}</strong>
      <span>{words.startHint}</span>
    </div>
  );
}

/** Opens and ends a comparison. B starts with another ranking than A, so that it shows a difference at once. */
function Tools({ compared, a, onSave }: { compared: boolean; a: Settings; onSave(): void }) {
  const { params } = link.value;
  const toggle = () => {
    const start: Settings = { ...a, by: a.by === "words" ? "both" : "words" };
    const empty: Settings = { type: "", by: "both", where: [] };
    go({ params: compared ? { ...params, ab: "", ...paramsOf(empty, "b") } : { ...params, ab: "1", ...paramsOf(start, "b") } });
  };
  return (
    <div class="row wrap">
      <button type="button" class="button small" aria-pressed={compared} onClick={toggle}>
        {compared ? words.compareEnd : words.compare}
      </button>
      <button type="button" class="button small" onClick={onSave}>
        {words.test}
      </button>
    </div>
  );
}

const against = (compared: boolean, side: Side, other: SearchOutput | null): Against | undefined => (compared && other !== null ? { side, hits: other.hits } : undefined);

interface SideProps {
  side: Side;
  text: string;
  request: SearchRequest;
  settings: Settings;
  found: Found;
  catalog: CatalogOutput | undefined;
  here: Place;
  against: Against | undefined;
  onChange(settings: Settings): void;
}

function SideView({ side, text, request, settings, found, catalog, here, against, onChange }: SideProps) {
  const compared = link.value.params["ab"] !== undefined;
  return (
    <section class="stack" aria-label={compared ? words.settingsOf(words.sides[side]) : words.title}>
      {compared ? (
        <div class="row wrap side-head">
          <span class="badge">{words.sides[side]}</span>
          <SettingsForm side={side} settings={settings} catalog={catalog} onChange={onChange} />
        </div>
      ) : null}
      {found.problem === null ? null : <ProblemBox problem={found.problem} />}
      {found.answer === null ? (
        found.problem === null ? <Skeleton /> : null
      ) : (
        <Hits answer={found.answer} text={text} request={request} settings={settings} side={side} catalog={catalog} here={here} against={against} more={found.more} />
      )}
    </section>
  );
}

export interface Found {
  answer: SearchOutput | null;
  problem: Problem | null;
  more(): void;
}

/** Searches, and appends further pages. */
function useSearch(here: Place | null, request: SearchRequest): Found {
  const key = JSON.stringify([here?.graph, here?.commit, request]);
  const [state, setState] = useState<{ key: string; answer: SearchOutput | null; problem: Problem | null }>({ key: "", answer: null, problem: null });
  const run = async (signal: AbortSignal, before: SearchOutput | null) => {
    if (here === null || request.text === "") return;
    try {
      const answer = await source.search(here, { ...request, after: before?.next }, signal);
      if (!signal.aborted) setState({ key, problem: null, answer: { ...answer, hits: [...(before?.hits ?? []), ...answer.hits] } });
    } catch (error) {
      const problem = problemOf(error);
      if (problem !== null && !signal.aborted) setState({ key, problem, answer: before });
    }
  };
  useEffect(() => {
    const abort = new AbortController();
    void run(abort.signal, null);
    return () => abort.abort();
  }, [key]);
  const current = state.key === key ? state : { answer: null, problem: null };
  return { ...current, more: () => void run(new AbortController().signal, current.answer) };
}

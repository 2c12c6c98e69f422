/** Stores a search as a test: a query with a check that finds the expected nodes among the first results. */
import { useEffect, useState } from "preact/hooks";

import { problemOf, type Problem } from "../../api/problem";
import type { CatalogOutput, SearchHitOutput } from "../../api/types";
import { announce } from "../../kit/announce";
import { Dialog } from "../../kit/Dialog";
import { Plain } from "../../kit/Plain";
import { ProblemBox } from "../../kit/ProblemBox";
import { nodeLabel } from "../../kit/Value";
import type { Place } from "../../source/source";
import { may, source, written } from "../../state/context";
import { link } from "../../state/location";
import { text as common } from "../../text/en";
import { words } from "../../text/search";
import { keyOf } from "./Hits";
import type { Found } from "./Search";
import type { Settings, Side } from "./settings";
import { nameFor, rankingsOf, testQueries } from "./testQuery";

const NAME = /^[A-Za-z]\w*$/;
const LISTED = 10;
const FIRST = 10;

interface Props {
  here: Place;
  text: string;
  catalog: CatalogOutput;
  sides: Partial<Record<Side, { settings: Settings; found: Found }>>;
  onClose(): void;
}

type Outcome = { state: "running" } | { state: "passes" } | { state: "fails"; found: number } | { state: "problem"; problem: Problem };

export function SaveTest({ here, text, catalog, sides, onClose }: Props) {
  const [side, setSide] = useState<Side>(sides.b === undefined ? "a" : "b");
  const { settings, found } = sides[side] ?? (sides.a as { settings: Settings; found: Found });
  const hits = listedHits(sides);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(() => new Set([link.value.params["why"] ?? keyOf(found.answer?.hits[0] ?? { type: "", id: "" })]));
  const [name, setName] = useState(nameFor(text));
  const [first, setFirst] = useState(FIRST);
  const [required, setRequired] = useState(true);
  const [problem, setProblem] = useState<Problem | null>(null);
  const expected = hits.filter((hit) => chosen.has(keyOf(hit)));
  const test = { name, text, settings, expected, first, required, description: words.testDescription(text, first) };
  const unranked = expected.find((hit) => rankingsOf(test, catalog, hit.type).length === 0);
  const queries = unranked === undefined && NAME.test(name) ? testQueries(test, catalog) : [];
  const outcome = useOutcome(here, queries);
  const allowed = here.branch !== null && may("change") && may("query_store");
  const save = async () => {
    try {
      await source.storeQueries(here, queries.map((each) => each.text).join("\n"), words.testMessage(name));
      written.value += 1;
      announce(words.testSaved(queries.map((each) => each.name).join(", ")));
      onClose();
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  return (
    <Dialog title={words.testTitle} onClose={onClose} wide>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <p class="muted">{words.testExplain}</p>
        <label class="field">
          <span class="label">{words.testName}</span>
          <input class="input" value={name} autofocus aria-invalid={!NAME.test(name)} onInput={(event) => setName(event.currentTarget.value)} />
          <span class="help">{words.testNameHelp}</span>
        </label>
        <div class="row wrap">
          <label class="row">
            {words.testFirst}
            <input class="input first" type="number" min={1} max={1000} value={first} onInput={(event) => setFirst(Math.min(1000, Math.max(1, event.currentTarget.valueAsNumber || 1)))} />
          </label>
          {sides.b === undefined ? null : (
            <div class="segmented" role="radiogroup" aria-label={words.testSettings}>
              {(["a", "b"] as const).map((each) => (
                <label key={each}>
                  <input type="radio" name="test-side" checked={side === each} onChange={() => setSide(each)} />
                  {words.settingsOf(words.sides[each])}
                </label>
              ))}
            </div>
          )}
          <label class="row">
            <input type="checkbox" checked={required} onChange={(event) => setRequired(event.currentTarget.checked)} />
            {words.testRequired}
          </label>
        </div>
        <Expected hits={hits} chosen={chosen} onChange={setChosen} />
        {unranked === undefined ? null : <p class="fault">{words.testNoRanker(unranked.type)}</p>}
        <Result outcome={outcome} expected={expected.length} />
        <details>
          <summary>{words.testText}</summary>
          <pre class="small" tabIndex={0}>
            <Plain text={queries.map((each) => each.text).join("\n")} />
          </pre>
        </details>
        {problem === null ? null : <ProblemBox problem={problem} />}
        <p class="muted small">{here.branch === null ? words.testPinned : allowed ? words.testBranch(here.ref) : words.testRefused}</p>
        <div class="actions">
          <button type="button" class="button" onClick={onClose}>
            {common.cancel}
          </button>
          <button type="submit" class="button primary" disabled={queries.length === 0 || !allowed}>
            {words.testSave}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** The first hits of both sides, and the one whose rank is explained. */
function listedHits(sides: Props["sides"]): SearchHitOutput[] {
  const explained = link.value.params["why"];
  const byKey = new Map<string, SearchHitOutput>();
  for (const side of [sides.b, sides.a]) {
    (side?.found.answer?.hits ?? []).forEach((hit, at) => {
      if (at < LISTED || keyOf(hit) === explained) byKey.set(keyOf(hit), byKey.get(keyOf(hit)) ?? hit);
    });
  }
  return [...byKey.values()];
}

function Expected({ hits, chosen, onChange }: { hits: readonly SearchHitOutput[]; chosen: ReadonlySet<string>; onChange(chosen: ReadonlySet<string>): void }) {
  return (
    <fieldset class="expected">
      <legend>{words.testExpected}</legend>
      {hits.map((hit) => {
        const key = keyOf(hit);
        const toggle = () => {
          const next = new Set(chosen);
          if (!next.delete(key)) next.add(key);
          onChange(next);
        };
        return (
          <label class="row" key={key}>
            <input type="checkbox" checked={chosen.has(key)} onChange={toggle} />
            <span class="cut">
              <Plain text={nodeLabel(hit.data, hit.id)} />
            </span>
            <span class="muted small">{hit.type}</span>
          </label>
        );
      })}
    </fieldset>
  );
}

function Result({ outcome, expected }: { outcome: Outcome | null; expected: number }) {
  if (outcome === null) return null;
  if (outcome.state === "problem") return <ProblemBox problem={outcome.problem} />;
  if (outcome.state === "running") return <p class="muted">{words.testChecking}</p>;
  return (
    <p role="status">
      <span class={outcome.state === "passes" ? "badge good" : "badge bad"}>{outcome.state === "passes" ? words.testPasses : words.testFails(outcome.found, expected)}</span>
    </p>
  );
}

/** Runs the queries of the test on this commit. */
function useOutcome(here: Place, queries: readonly { text: string; expected: number }[]): Outcome | null {
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const key = queries.map((each) => each.text).join("\n");
  useEffect(() => {
    if (queries.length === 0) {
      setOutcome(null);
      return undefined;
    }
    const abort = new AbortController();
    setOutcome({ state: "running" });
    const run = async (): Promise<Outcome> => {
      let missing = 0;
      let found = 0;
      for (const each of queries) {
        const table = await source.query(here, { text: each.text, name: null, params: {} }, null, abort.signal);
        missing += table.rowCount;
        found += table.rowCount === 0 ? each.expected : Number(table.cell(0, 0));
      }
      return missing === 0 ? { state: "passes" } : { state: "fails", found };
    };
    run().then(
      (value) => {
        if (!abort.signal.aborted) setOutcome(value);
      },
      (error: unknown) => {
        const problem = problemOf(error);
        if (problem !== null && !abort.signal.aborted) setOutcome({ state: "problem", problem });
      },
    );
    return () => abort.abort();
  }, [key]);
  return outcome;
}

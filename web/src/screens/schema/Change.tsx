/** The schema text: read-only, or a draft that is planned and applied. */
import { computed, signal, useSignal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";

import { problemOf, type Problem } from "../../api/problem";
import type { SchemaPlanOutput } from "../../api/schemaTypes";
import { serverServices } from "../../editor/server";
import { TextEditor } from "../../editor/TextEditor";
import { announce } from "../../kit/announce";
import { ProblemBox } from "../../kit/ProblemBox";
import { applySchema, createBranch, planSchema } from "../../source/schema";
import type { Place } from "../../source/source";
import { config, may, written } from "../../state/context";
import { go, link, replace } from "../../state/location";
import { schemaText as text } from "../../text/schema";
import { draftOf } from "./draft";

interface Props {
  here: Place;
  source: string;
}

export function SchemaTextPane({ here, source }: Props) {
  const changing = link.value.params["change"] !== undefined && here.branch !== null && !config.read_only;
  const { change: _, ...others } = link.value.params;
  return (
    <section class="card schema-text" aria-label={text.text}>
      <header>
        <h2>{changing ? text.change.editor : text.text}</h2>
        {changing ? null : (
          <span title={here.branch === null ? text.change.pinned : undefined}>
            <button type="button" class="button small" disabled={here.branch === null || config.read_only} onClick={() => replace({ params: { ...others, change: "1" } })}>
              {text.change.start}
            </button>
          </span>
        )}
      </header>
      {changing ? <Draft key={`${here.graph} ${here.ref}`} here={here} branch={here.branch as string} source={source} onEnd={() => replace({ params: others })} /> : <ReadOnly key={`${here.commit}`} source={source} />}
    </section>
  );
}

function ReadOnly({ source }: { source: string }) {
  const value = useSignal(source);
  return (
    <div class="editor-pane">
      <TextEditor label={text.text} value={value} readOnly />
    </div>
  );
}

interface Planned {
  readonly text: string;
  readonly permits: boolean;
  readonly commit: string;
  readonly plan: SchemaPlanOutput;
}

function Draft({ here, branch, source, onEnd }: { here: Place; branch: string; source: string; onEnd(): void }) {
  const kept = draftOf(here.graph, here.ref);
  const value = useMemo(() => signal(kept.value ?? source), []);
  const changed = useMemo(() => computed(() => value.value !== source), [source]);
  const services = useMemo(() => serverServices("pg"), []);
  const [planned, setPlanned] = useState<Planned | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [permits, setPermits] = useState(false);
  useEffect(() => {
    kept.value = changed.value ? value.value : null;
  }, [value.value, changed.value]);
  const plan = async (allowDataLoss: boolean) => {
    setProblem(null);
    try {
      const found = await planSchema(here.graph, { text: value.value, branch, allowDataLoss });
      setPlanned({ text: value.value, permits: allowDataLoss, commit: here.commit, plan: found });
    } catch (error) {
      setPlanned(null);
      setProblem(problemOf(error));
    }
  };
  const discard = () => {
    kept.value = null;
    onEnd();
  };
  return (
    <>
      <div class="editor-pane">
        <TextEditor label={text.change.editor} value={value} services={services} onRun={() => void plan(permits)} takesFocus={() => true} />
      </div>
      <div class="row wrap pad">
        <button type="button" class="button primary" onClick={() => void plan(permits)}>
          {text.change.plan}
        </button>
        <button type="button" class="button" onClick={discard}>
          {text.change.discard}
        </button>
      </div>
      {problem === null ? null : (
        <div class="pad">
          <ProblemBox problem={problem} />
        </div>
      )}
      {planned === null ? null : (
        <PlanView
          planned={planned}
          stale={planned.text !== value.value}
          permits={permits}
          onPermits={(wanted) => {
            setPermits(wanted);
            void plan(wanted);
          }}
        >
          <Apply
            here={here}
            branch={branch}
            planned={planned}
            stale={planned.text !== value.value}
            onDone={() => {
              kept.value = null;
            }}
          />
        </PlanView>
      )}
    </>
  );
}

const isDrop = (step: Record<string, unknown>): boolean => String(step["kind"]).startsWith("drop_");
const isRefused = (step: Record<string, unknown>): boolean => step["kind"] === "unsupported_change";
const isLoss = (step: Record<string, unknown>): boolean => String(step["code"]).startsWith("OG-DS-");

interface PlanProps {
  planned: Planned;
  stale: boolean;
  permits: boolean;
  onPermits(wanted: boolean): void;
  children: preact.ComponentChildren;
}

function PlanView({ planned: { plan }, stale, permits, onPermits, children }: PlanProps) {
  const words = text.change;
  return (
    <div class="plan-view stack tight pad" role="status">
      <h3>{words.planned}</h3>
      {stale ? <p class="muted">{words.stale}</p> : null}
      {plan.step_count === 0 ? <p class="muted">{words.none}</p> : null}
      {plan.steps.some((step) => isRefused(step) && !isLoss(step)) ? <p class="bad-text">{words.unsupported}</p> : null}
      <ol class="plan-steps">
        {plan.steps.map((step, index) => (
          <li key={index} class={isDrop(step) || isRefused(step) ? "bad-text" : ""}>
            {isRefused(step) ? "✕ " : ""}
            {plan.descriptions?.[index] ?? String(step["kind"])}
            {isLoss(step) ? <span class="badge bad">{words.loss}</span> : null}
            {typeof step["code"] === "string" ? <code class="badge">{step["code"]}</code> : <code class="badge">{String(step["kind"])}</code>}
          </li>
        ))}
      </ol>
      {plan.losses === undefined ? null : (
        <div class="bad-text">
          <p>{words.lost}</p>
          <ul>
            {plan.losses.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        </div>
      )}
      {plan.rename_hints === undefined ? null : (
        <div>
          <p>{words.hints}</p>
          <ul>
            {plan.rename_hints.map((each) => (
              <li key={each}>
                <code>{each}</code>
              </li>
            ))}
          </ul>
        </div>
      )}
      {plan.losses === undefined ? null : (
        <label class="row check">
          <input type="checkbox" checked={permits} onChange={(event) => onPermits(event.currentTarget.checked)} />
          {words.permit}
        </label>
      )}
      {plan.supported && plan.step_count > 0 ? children : null}
    </div>
  );
}

function Apply({ here, branch, planned, stale, onDone }: { here: Place; branch: string; planned: Planned; stale: boolean; onDone(): void }) {
  const words = text.change;
  const allowed = may("schema_apply");
  const [onNew, setOnNew] = useState(!allowed);
  const [name, setName] = useState("");
  const [message, setMessage] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [running, setRunning] = useState(false);
  const apply = async (allowQueryBreakage: boolean) => {
    setRunning(true);
    setProblem(null);
    const target = onNew ? name.trim() : branch;
    try {
      if (onNew && problem?.code !== "breaks_stored_queries") await createBranch(here.graph, target, planned.commit);
      const result = await applySchema(here.graph, { text: planned.text, branch: target, allowDataLoss: planned.permits, commit: planned.commit, message, allowQueryBreakage });
      onDone();
      announce(words.applied(result.step_count, target));
      written.value += 1;
      go({ ref: target, path: [], params: {} });
    } catch (error) {
      setProblem(problemOf(error));
      setRunning(false);
    }
  };
  return (
    <form
      class="stack tight apply"
      onSubmit={(event) => {
        event.preventDefault();
        void apply(false);
      }}
    >
      <fieldset class="row wrap">
        <legend class="visually-hidden">{words.where}</legend>
        <label class="row check">
          <input type="radio" name="where" checked={!onNew} disabled={!allowed} onChange={() => setOnNew(false)} />
          {words.here(branch)}
        </label>
        <label class="row check">
          <input type="radio" name="where" checked={onNew} onChange={() => setOnNew(true)} />
          {words.onNew}
        </label>
      </fieldset>
      {allowed ? null : <p class="muted small">{words.notAllowed}</p>}
      {onNew ? <input class="input" type="text" aria-label={words.branchName} placeholder={words.branchName} required value={name} onInput={(event) => setName(event.currentTarget.value)} /> : null}
      <input class="input" type="text" aria-label={words.message} placeholder={words.message} value={message} onInput={(event) => setMessage(event.currentTarget.value)} />
      <div class="row wrap">
        <button type="submit" class="button primary" disabled={stale || running || (onNew && name.trim() === "")}>
          {words.apply}
        </button>
        {problem?.code === "breaks_stored_queries" ? (
          <button type="button" class="button danger" onClick={() => void apply(true)}>
            {words.breaks}
          </button>
        ) : null}
      </div>
      {problem === null ? null : <ProblemBox problem={problem} />}
    </form>
  );
}

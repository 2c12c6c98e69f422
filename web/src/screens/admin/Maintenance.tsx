/** Maintenance: optimize, indexes, cleanup with a preview, verification. The work continues in the background. */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import type { OperationOutput } from "../../api/adminTypes";
import { Problem, problemOf } from "../../api/problem";
import { Dialog } from "../../kit/Dialog";
import { ProblemBox } from "../../kit/ProblemBox";
import type { Maintenance as Kind } from "../../source/admin";
import { config, may, source, written } from "../../state/context";
import { isPinned } from "../../state/link";
import { link } from "../../state/location";
import { admin } from "../../text/admin";
import { text } from "../../text/en";
import { bytesText } from "./format";
import { isCleanup, Outcome, removedOf } from "./Outcome";

const words = admin.maintenance;
const EVERY_MS = 500;
const KEEP = 20;

/** A job that this page started. It survives a change of the screen. */
interface Job {
  readonly what: Kind;
  readonly operation: OperationOutput | null;
  readonly problem: Problem | null;
}

const jobs = signal<Partial<Record<Kind, Job>>>({});

async function run(what: Kind, body: Readonly<Record<string, unknown>>): Promise<void> {
  const graph = link.value.graph;
  const note = (job: Omit<Job, "what">) => (jobs.value = { ...jobs.value, [what]: { what, ...job } });
  note({ operation: null, problem: null });
  try {
    let operation = await source.admin.maintain(graph, what, body);
    note({ operation, problem: null });
    while (operation.state === "running" || operation.state === "queued") {
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
      operation = await source.admin.operation(operation.id);
      note({ operation, problem: null });
    }
    written.value += 1;
  } catch (error) {
    note({ operation: null, problem: problemOf(error) });
  }
}

export function Maintenance() {
  const { ref } = link.value;
  const [deep, setDeep] = useState(false);
  const [keep, setKeep] = useState(KEEP);
  const [asking, setAsking] = useState(false);
  const refused = refusal(ref);
  const preview = jobs.value.cleanup;
  const removable = preview?.operation?.state === "done" && isCleanup(preview.operation.result) && !preview.operation.result.confirmed ? removedOf(preview.operation.result) : null;
  return (
    <section class="card" aria-labelledby="maintenance">
      <header>
        <h2 id="maintenance">{words.title}</h2>
        {refused === null ? null : <span class="badge warn">{refused}</span>}
      </header>
      <Task what="optimize" title={words.optimize} help={words.optimizeHelp(ref)} refused={refused} onRun={() => void run("optimize", { branch: ref })} />
      <Task what="indices" title={words.indices} help={words.indicesHelp(ref)} refused={refused} onRun={() => void run("indices", { branch: ref })} />
      <Task what="verify" title={words.verify} help={words.verifyHelp} refused={refused} onRun={() => void run("verify", { deep })}>
        <label class="row">
          <input type="checkbox" checked={deep} onChange={(event) => setDeep(event.currentTarget.checked)} />
          {words.deep}
        </label>
      </Task>
      <Task what="cleanup" title={words.preview} help={words.cleanupHelp} refused={refused} onRun={() => void run("cleanup", { keep })}>
        <label class="row">
          {words.keep}
          <input class="input first" type="number" min={1} value={keep} onInput={(event) => setKeep(Math.max(1, event.currentTarget.valueAsNumber || 1))} />
        </label>
        <button type="button" class="button danger" disabled={refused !== null || removable === null || removable.versions === 0} onClick={() => setAsking(true)}>
          {words.confirm}
        </button>
      </Task>
      {asking && removable !== null ? (
        <Dialog title={words.confirmTitle} onClose={() => setAsking(false)}>
          <p>{words.confirmText(removable.versions, bytesText(removable.bytes))}</p>
          <div class="actions">
            <button type="button" class="button" onClick={() => setAsking(false)}>
              {text.cancel}
            </button>
            <button type="button" class="button danger" onClick={() => (setAsking(false), void run("cleanup", { keep, confirm: true }))}>
              {words.confirm}
            </button>
          </div>
        </Dialog>
      ) : null}
    </section>
  );
}

/** Why the caller may not maintain this branch; null if it may. */
function refusal(ref: string): string | null {
  if (config.read_only) return words.readOnly;
  if (isPinned(ref)) return words.pinned;
  return may("maintain") ? null : admin.refused("maintain");
}

interface TaskProps {
  what: Kind;
  title: string;
  help: string;
  refused: string | null;
  onRun(): void;
  children?: ComponentChildren;
}

function Task({ what, title, help, refused, onRun, children }: TaskProps) {
  const job = jobs.value[what];
  const busy = job !== undefined && job.problem === null && (job.operation === null || job.operation.state === "running" || job.operation.state === "queued");
  return (
    <div class="job">
      <div class="row wrap">
        <button type="button" class="button" disabled={refused !== null || busy} title={refused ?? undefined} onClick={onRun}>
          {title}
        </button>
        {children}
        <span class="muted small grow">{help}</span>
      </div>
      {busy ? <Progress title={title} operation={job.operation} /> : null}
      {job?.problem === null || job === undefined ? null : <ProblemBox problem={job.problem} />}
      {job?.operation?.state === "failed" && job.operation.error !== undefined ? <ProblemBox problem={new Problem(0, { ...job.operation.error })} /> : null}
      {job?.operation?.state === "done" ? <Outcome of={job.operation.result} /> : null}
      {job?.operation?.state === "cancelled" ? <p class="muted">{words.ended(title, admin.queries.states.cancelled)}</p> : null}
    </div>
  );
}

function Progress({ title, operation }: { title: string; operation: OperationOutput | null }) {
  const label = words.running(title, admin.queries.s(operation?.age_s ?? 0));
  return (
    <div class="row wrap" role="status">
      <progress aria-label={label} />
      <span class="muted small grow">{label}</span>
      {operation === null ? null : (
        <button type="button" class="button small" onClick={() => void source.admin.cancel(operation.id)}>
          {text.cancel}
        </button>
      )}
    </div>
  );
}

/**
 * Merge review: `merge?source=<branch>&target=<branch>`. Conflicts are settled here; a preview shows the settled rows and
 * what is left; the merge takes exactly the two heads that were reviewed.
 */
import { useEffect, useState } from "preact/hooks";

import { problemOf, type Problem } from "../../api/problem";
import type { BranchMergeOutput, MergeConflictOutput } from "../../api/reviewTypes";
import type { CommitOutput } from "../../api/types";
import { Icon } from "../../kit/Icon";
import { Loading, Skeleton, useLoad } from "../../kit/load";
import { Menu } from "../../kit/Menu";
import { Plain } from "../../kit/Plain";
import { ProblemBox } from "../../kit/ProblemBox";
import { Time } from "../../kit/Time";
import { storeChoices } from "../../review/choiceStore";
import { conflictState, ConflictView } from "../../review/ConflictView";
import { copiesOfMerge } from "../../review/copy";
import { RefPicker } from "../../review/RefPicker";
import { config, me, place, source, written } from "../../state/context";
import { resolveOf, type Choices } from "../../state/choices";
import { isPinned, MAIN } from "../../state/link";
import { go, href, link } from "../../state/location";
import { text } from "../../text/review";
import { Plan } from "./Plan";
import { joinConflicts, readReview, requestOf, type Pair, type Preview, type Review } from "./review";

export default function Merge() {
  const { graph, ref, params } = link.value;
  const pair: Pair = { graph, source: params["source"] ?? "", target: params["target"] ?? (isPinned(ref) ? MAIN : ref) };
  const set = (change: { source?: string; target?: string }) => go({ params: { source: pair.source, target: pair.target, ...change } });
  const pickers = (
    <>
      <RefPicker graph={graph} label={text.merge.chooseSource} value={pair.source === "" ? "…" : pair.source} onChoose={(name) => set({ source: name })} />
      <span class="muted">{text.merge.into}</span>
      <RefPicker graph={graph} label={text.merge.chooseTarget} value={pair.target} onChoose={(name) => set({ target: name })} />
    </>
  );
  const fault = pair.source === "" ? text.merge.choose : pair.source === pair.target ? text.merge.sameBranch : null;
  if (place.value === null) return <Skeleton />;
  return (
    <div class="merge-screen">
      <h1 class="visually-hidden">
        <Plain text={text.merge.title(pair.source, pair.target)} />
      </h1>
      {fault === null ? (
        <ReviewOf pair={pair} pickers={pickers} key={JSON.stringify(pair)} />
      ) : (
        <>
          <header class="card diff-head">{pickers}</header>
          <p class="empty">{fault}</p>
        </>
      )}
    </div>
  );
}

interface Moved {
  readonly branch: string;
  readonly commits: readonly CommitOutput[];
}

function ReviewOf({ pair, pickers }: { pair: Pair; pickers: preact.ComponentChildren }) {
  const [round, setRound] = useState(0);
  const [moved, setMoved] = useState<Moved | null>(null);
  const [done, setDone] = useState<{ merged: BranchMergeOutput; before: string } | null>(null);
  const loaded = useLoad(JSON.stringify([pair, round]), (signal) => readReview(pair, signal));
  if (done !== null) return <Done {...done} />;
  return (
    <Loading of={loaded}>
      {(review) => (
        <Open
          key={round}
          review={review}
          pickers={pickers}
          moved={moved}
          onMoved={(what) => {
            setMoved(what);
            setRound(round + 1);
          }}
          onDone={(merged) => {
            storeChoices(pair.graph, pair.source, pair.target, { choices: {}, conflicts: [] });
            setDone({ merged, before: review.ours.commit });
            written.value += 1;
          }}
        />
      )}
    </Loading>
  );
}

interface OpenProps {
  review: Review;
  pickers: preact.ComponentChildren;
  moved: Moved | null;
  onMoved(moved: Moved): void;
  onDone(merged: BranchMergeOutput): void;
}

function Open({ review, pickers, moved, onMoved, onDone }: OpenProps) {
  const { pair, ours, theirs } = review;
  const [choices, setChoices] = useState(review.choices);
  const [conflicts, setConflicts] = useState(review.conflicts);
  const [preview, setPreview] = useState<Preview | null>(review.preview);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const [message, setMessage] = useState("");
  const [deleteBranch, setDeleteBranch] = useState(false);
  const keep = (next: Choices, known: readonly MergeConflictOutput[]) => {
    setChoices(next);
    setConflicts(known);
    storeChoices(pair.graph, pair.source, pair.target, { choices: next, conflicts: known.filter((conflict) => conflictState(conflict, next) === "settled") });
  };
  useEffect(() => keep(choices, conflicts), []);

  /** Runs a request; a moved head is read again instead of being reported. */
  const attempt = async (run: () => Promise<void>) => {
    setBusy(true);
    setProblem(null);
    try {
      await run();
    } catch (error) {
      const found = problemOf(error);
      const failure = found?.code === "precondition_failed" ? (found.document["precondition_failure"] as { expected: string; branch?: string } | undefined) : undefined;
      if (failure?.branch !== undefined) onMoved({ branch: failure.branch, commits: await newCommits(pair.graph, failure.branch, failure.expected) });
      else setProblem(found);
    } finally {
      setBusy(false);
    }
  };
  const runPreview = () =>
    attempt(async () => {
      const plan = await source.review.mergePreview(requestOf(review, resolveOf(choices)));
      setPreview({ choices, plan });
      keep(choices, joinConflicts(conflicts, plan.conflicts));
    });
  const runMerge = () =>
    attempt(async () => onDone(await source.review.merge({ ...requestOf(review, resolveOf(choices)), targetCommit: ours.commit, message, deleteBranch })));

  const current = preview !== null && same(preview.choices, choices) ? preview.plan : resolveOf(choices) === null ? review.plan : null;
  const reason = mergeReason(review, current);
  const settled = conflicts.filter((conflict) => conflictState(conflict, choices) === "settled").length;
  return (
    <>
      <header class="card diff-head">
        <div class="row wrap">{pickers}</div>
        <div class="row wrap" aria-live="polite">
          <span class="badge">{text.merge.outcomes[review.plan.outcome]}</span>
          {conflicts.length === 0 ? (
            <span class="badge good">{text.merge.noConflicts}</span>
          ) : (
            <>
              <strong class="number">{text.merge.conflicts(conflicts.length)}</strong>
              <span class={settled === conflicts.length ? "badge good" : "badge warn"}>{text.merge.settledCount(settled)}</span>
            </>
          )}
        </div>
        <div class="row wrap push">
          <a class="button plain" href={href({ screen: "diff", path: [], params: { from: pair.target, to: pair.source } })}>
            {text.merge.compare}
          </a>
          <Menu label={text.merge.copyAs} button={<Icon name="copy" />} class="button plain" end items={copiesOfMerge(source, requestOf(review, resolveOf(choices)), ours.commit)} />
          <button type="button" class={reason === null ? "button" : "button primary"} disabled={busy || conflicts.length === 0} onClick={() => void runPreview()}>
            {text.merge.preview}
          </button>
          <button type="button" class={reason === null ? "button primary" : "button"} aria-disabled={reason !== null || busy} title={reason ?? undefined} onClick={() => (reason === null && !busy ? void runMerge() : undefined)}>
            {busy ? text.merge.merging : text.merge.merge}
          </button>
        </div>
      </header>
      {moved === null ? null : <MovedNotice moved={moved} kept={Object.keys(review.choices).length} dropped={review.dropped} />}
      {problem === null ? null : <ProblemBox problem={problem} />}
      <div class="merge-panes">
        <div class="stack">
          {conflicts.length === 0 ? <NoConflicts review={review} /> : null}
          <ConflictView
            conflicts={conflicts}
            choices={choices}
            onChoices={(next) => keep(next, conflicts)}
            sides={{ ours: { name: pair.target, place: ours }, theirs: { name: pair.source, place: theirs } }}
            catalog={review.catalog}
            settled={new Map((current?.settled ?? []).map((row) => [row.id, row.row]))}
          />
        </div>
        <Plan review={review} plan={current} reason={reason} message={message} onMessage={setMessage} deleteBranch={deleteBranch} onDeleteBranch={setDeleteBranch} />
      </div>
    </>
  );
}

const same = (a: Choices, b: Choices): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Returns why the merge cannot be taken; null if it can. */
function mergeReason(review: Review, plan: Review["plan"] | null): string | null {
  const { pair } = review;
  const graph = me.value?.graphs.find((each) => each.graph_id === pair.graph);
  const allowed = graph?.branches.find((each) => each.branch === pair.target)?.actions.includes("branch_merge") ?? false;
  if (config.read_only) return text.merge.readOnly;
  if (!allowed) return text.merge.mayNot(pair.target);
  if (review.plan.outcome === "already_up_to_date") return text.merge.upToDate(pair.source, pair.target);
  if (plan === null) return text.merge.needsPreview;
  if (plan.conflicts.length > 0) return text.merge.conflictsLeft(plan.conflicts.length);
  return (plan.hidden_conflicts ?? 0) > 0 ? text.merge.hidden(plan.hidden_conflicts ?? 0) : null;
}

const COMMITS_SHOWN = 10;

async function newCommits(graph: string, branch: string, since: string): Promise<CommitOutput[]> {
  try {
    return await source.review.commitsSince(graph, branch, since, COMMITS_SHOWN);
  } catch {
    return []; // The notice says that the branch moved; its commits are an addition.
  }
}

function MovedNotice({ moved, kept, dropped }: { moved: Moved; kept: number; dropped: number }) {
  return (
    <section class="card moved" role="alert">
      <p>
        <strong>
          <Plain text={text.merge.moved(moved.branch)} />
        </strong>{" "}
        {kept + dropped > 0 ? text.merge.kept(kept, dropped) : null}
      </p>
      {moved.commits.length === 0 ? null : (
        <>
          <p class="muted small">{text.merge.movedBy}</p>
          <ul class="list">
            {moved.commits.map((commit) => (
              <li key={commit.graph_commit_id}>
                <a class="item" href={href({ screen: "diff", path: [], params: { from: `@${commit.parent_commit_id ?? commit.graph_commit_id}`, to: `@${commit.graph_commit_id}` } })}>
                  <code class="muted">{commit.graph_commit_id.slice(-6)}</code>
                  <strong>{commit.actor_id === null ? "" : <Plain text={commit.actor_id} />}</strong>
                  <span class="grow cut">{commit.message === null ? <span class="muted">{commit.kind}</span> : <Plain text={commit.message} />}</span>
                  <Time at={commit.created_at} />
                </a>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function NoConflicts({ review }: { review: Review }) {
  const { plan, pair } = review;
  return (
    <div class="card empty">
      <strong>{plan.outcome === "already_up_to_date" ? <Plain text={text.merge.upToDate(pair.source, pair.target)} /> : text.merge.noConflicts}</strong>
      {plan.hidden_conflicts === undefined ? null : <span>{text.merge.hidden(plan.hidden_conflicts)}</span>}
    </div>
  );
}

function Done({ merged, before }: { merged: BranchMergeOutput; before: string }) {
  const commit = merged.commit_id;
  return (
    <section class="card merge-done" role="status">
      <span class="done-mark" aria-hidden="true">
        ✓
      </span>
      <h2>
        <Plain text={text.merge.done(merged.source, merged.target)} />
      </h2>
      {commit === null ? null : (
        <p class="muted">
          {text.merge.doneCommit} <code>{commit}</code>
        </p>
      )}
      {merged.branch_deleted === true ? <p class="muted">{text.merge.branchDeleted(merged.source)}</p> : null}
      {merged.branch_delete_error === undefined ? null : (
        <p class="problem">
          <Plain text={merged.branch_delete_error} />
        </p>
      )}
      <div class="row wrap">
        <a class="button primary" href={href({ ref: merged.target, screen: "home", path: [], params: {} })}>
          <Plain text={text.merge.seeTarget(merged.target)} />
        </a>
        {commit === null ? null : (
          <a class="button" href={href({ screen: "diff", path: [], params: { from: `@${before}`, to: `@${commit}` } })}>
            {text.merge.seeChanges}
          </a>
        )}
      </div>
    </section>
  );
}


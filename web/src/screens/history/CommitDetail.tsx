/** An opened commit: its whole message, its place, the numbers of its changes, and what can be done with it. */
import { useState } from "preact/hooks";

import type { CommitOutput } from "../../api/types";
import { CompareDialog } from "../../commits/CompareDialog";
import { NewBranchDialog, NewTagDialog } from "../../commits/refs";
import { RevertDialog } from "../../commits/RevertDialog";
import { changedTables, TypeCounts } from "../../commits/TypeCounts";
import { copyText } from "../../kit/announce";
import { Icon } from "../../kit/Icon";
import { Loading, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { fullTime } from "../../kit/Time";
import { config, source } from "../../state/context";
import { href, link } from "../../state/location";
import { historyText as text } from "../../text/history";
import { branchOf, parentsOf } from "./CommitList";

const ONE_LINE = 60;

export function CommitDetail({ commit }: { commit: CommitOutput }) {
  const id = commit.graph_commit_id;
  const words = text.detail;
  const { commit: _, ...params } = link.value.params;
  return (
    <div class="commit-detail">
      {commit.message === null || commit.message.length <= ONE_LINE ? null : (
        <p class="whole-message">
          <Plain text={commit.message} />
        </p>
      )}
      <div class="commit-facts">
        <dl class="dl">
          <dt>{words.actor}</dt>
          <dd>
            <Plain text={commit.actor_id ?? text.unknownActor} />
          </dd>
          <dt>{words.time}</dt>
          <dd>{fullTime(commit.created_at)}</dd>
          <dt>{words.branch}</dt>
          <dd>
            <Plain text={branchOf(commit)} />
          </dd>
          <dt>{words.kind}</dt>
          <dd>{commit.kind}</dd>
          <dt>{words.commit}</dt>
          <dd>
            <code>{id}</code>
          </dd>
          {parentsOf(commit).length === 0 ? null : (
            <>
              <dt>{words.parents}</dt>
              <dd class="row wrap">
                {parentsOf(commit).map((parent) => (
                  <a key={parent} href={href({ params: { ...params, commit: parent } })}>
                    <code>{parent.slice(-6)}</code>
                  </a>
                ))}
              </dd>
            </>
          )}
        </dl>
        <ChangeCounts commit={commit} />
      </div>
      <Actions commit={commit} />
    </div>
  );
}

function ChangeCounts({ commit }: { commit: CommitOutput }) {
  const { graph } = link.value;
  const parent = commit.parent_commit_id;
  const points = parent === null ? null : { graph, from: parent, to: commit.graph_commit_id, base: false };
  const loaded = useLoad(points === null ? null : JSON.stringify(points), (signal) => source.review.diffSummary(points as NonNullable<typeof points>, signal));
  if (points === null) return <p class="muted">{text.firstCommit}</p>;
  return (
    <section class="stack tight">
      <h3 class="muted">{text.detail.changes}</h3>
      <Loading of={loaded}>
        {(summary) => (
          <>
            {changedTables(summary.tables).length === 0 && summary.schema_steps.length === 0 ? <p class="muted">{text.noChanges}</p> : <TypeCounts of={summary.tables} label={text.detail.changes} />}
            {summary.schema_steps.length === 0 ? null : <p class="muted">{text.schemaSteps(summary.schema_steps.length)}</p>}
          </>
        )}
      </Loading>
    </section>
  );
}

type Open = "compare" | "branch" | "tag" | "revert" | null;

function Actions({ commit }: { commit: CommitOutput }) {
  const [open, setOpen] = useState<Open>(null);
  const id = commit.graph_commit_id;
  const parent = commit.parent_commit_id;
  const close = () => setOpen(null);
  const readOnly = config.read_only;
  return (
    <div class="row wrap">
      {parent === null ? null : (
        <a class="button primary" href={href({ screen: "diff", path: [], params: { from: `@${parent}`, to: `@${id}` } })}>
          {text.showChanges}
        </a>
      )}
      <button type="button" class="button" onClick={() => setOpen("compare")}>
        {text.compareWith}
      </button>
      <button type="button" class="button" disabled={readOnly} onClick={() => setOpen("branch")}>
        <Icon name="branch" />
        {text.branchFrom}
      </button>
      <button type="button" class="button" disabled={readOnly} onClick={() => setOpen("tag")}>
        <Icon name="pin" />
        {text.tagThis}
      </button>
      {parent === null ? null : (
        <button type="button" class="button" disabled={readOnly} onClick={() => setOpen("revert")}>
          {text.revert}
        </button>
      )}
      <button type="button" class="button" onClick={() => void copyText(id)}>
        <Icon name="copy" />
        {text.copyId}
      </button>
      <a class="button" href={href({ ref: `@${id}`, screen: "home", path: [], params: {} })}>
        <Icon name="clock" />
        {text.asOf}
      </a>
      {open === "compare" ? <CompareDialog with={`@${id}`} onClose={close} /> : null}
      {open === "branch" ? <NewBranchDialog start={{ at: id }} onClose={close} /> : null}
      {open === "tag" ? <NewTagDialog commit={id} onClose={close} /> : null}
      {open === "revert" ? <RevertDialog commit={commit} onClose={close} /> : null}
    </div>
  );
}

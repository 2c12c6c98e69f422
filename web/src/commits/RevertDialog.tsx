/** Reverts a commit on a branch, after a preview of the new commit. */
import { useState } from "preact/hooks";

import type { MergeConflictOutput, OpCountOutput, RevertPreviewOutput } from "../api/reviewTypes";
import type { CommitOutput } from "../api/types";
import { announce } from "../kit/announce";
import { Field, FormDialog } from "../kit/FormDialog";
import { Loading, useLoad } from "../kit/load";
import { Plain } from "../kit/Plain";
import type { ResolveAll } from "../source/history";
import { source, written } from "../state/context";
import { isPinned, MAIN } from "../state/link";
import { link } from "../state/location";
import { commitText } from "../text/commits";
import { BranchSelect } from "./BranchSelect";
import { changedTables, TypeCounts } from "./TypeCounts";

const words = commitText.revert;

/** The commit to revert, as far as the dialog shows it. */
export type Reverted = Pick<CommitOutput, "graph_commit_id" | "message" | "kind">;

export function RevertDialog({ commit, onClose }: { commit: Reverted; onClose(): void }) {
  const { graph, ref } = link.value;
  const id = commit.graph_commit_id;
  const [branch, setBranch] = useState(isPinned(ref) ? MAIN : ref);
  const [resolve, setResolve] = useState<ResolveAll>(undefined);
  const [message, setMessage] = useState(words.message(commit.message ?? commit.kind));
  const loaded = useLoad(JSON.stringify([graph, id, branch, resolve]), (signal) => source.history.previewRevert(graph, id, branch, resolve, signal));
  const preview = loaded.value;
  const open = preview === undefined ? 1 : preview.conflicts.length + (preview.hidden_conflicts ?? 0);
  return (
    <FormDialog
      title={words.title}
      submit={words.run}
      wide
      ready={preview !== undefined && open === 0 && hasChanges(preview)}
      onClose={onClose}
      run={async () => {
        await source.history.revert(graph, id, branch, resolve, message.trim());
        announce(words.done);
        written.value += 1;
      }}
    >
      <p class="muted">
        <Plain text={words.explain(`${id.slice(-6)} (${commit.message ?? commit.kind})`, branch)} />
      </p>
      <BranchSelect graph={graph} value={branch} onValue={setBranch} />
      <Loading of={loaded}>{(shown) => <Preview preview={shown} resolve={resolve} onResolve={setResolve} />}</Loading>
      <Field label={commitText.message} value={message} onValue={setMessage} />
    </FormDialog>
  );
}

const hasChanges = (preview: RevertPreviewOutput): boolean => preview.schema_steps.length > 0 || changedTables(countsOf(preview)).length > 0;

const countsOf = (preview: RevertPreviewOutput): Record<string, OpCountOutput> =>
  Object.fromEntries(Object.entries(preview.tables).map(([table, each]) => [table, { insert: each.inserted, update: each.updated, delete: each.deleted }]));

interface PreviewProps {
  preview: RevertPreviewOutput;
  resolve: ResolveAll;
  onResolve(resolve: ResolveAll): void;
}

function Preview({ preview, resolve, onResolve }: PreviewProps) {
  const hidden = preview.hidden_conflicts ?? 0;
  return (
    <>
      {preview.conflicts.length > 0 || resolve !== undefined ? <Conflicts conflicts={preview.conflicts} resolve={resolve} onResolve={onResolve} /> : null}
      {hidden > 0 ? <p class="muted">{words.hidden(hidden)}</p> : null}
      {preview.conflicts.length > 0 ? null : (
        <section class="stack tight">
          <h3>{words.preview}</h3>
          {hasChanges(preview) ? <TypeCounts of={countsOf(preview)} label={words.preview} /> : <p class="muted">{words.nothing}</p>}
          {preview.schema_steps.length === 0 ? null : (
            <>
              <p class="muted">{words.schema}</p>
              <ul>
                {preview.schema_steps.map((step) => (
                  <li key={step}>
                    <Plain text={step} />
                  </li>
                ))}
              </ul>
            </>
          )}
        </section>
      )}
    </>
  );
}

function Conflicts({ conflicts, resolve, onResolve }: { conflicts: readonly MergeConflictOutput[]; resolve: ResolveAll; onResolve(resolve: ResolveAll): void }) {
  const choices = [
    ["ours", words.ours],
    ["theirs", words.theirs],
  ] as const;
  return (
    <section class="stack tight">
      {conflicts.length > 0 && resolve === undefined ? <p>{words.conflicts(conflicts.length)}</p> : null}
      {conflicts.length > 0 && resolve !== undefined ? <p class="problem">{words.unresolved}</p> : null}
      <ul class="conflicts">
        {conflicts.map((conflict) => (
          <li key={conflict.id}>
            <Plain text={conflict.message} />
          </li>
        ))}
      </ul>
      <fieldset class="row wrap plain-set">
        <legend class="muted small">{words.resolve}</legend>
        <div class="segmented">
          {choices.map(([value, label]) => (
            <label key={value}>
              <input type="radio" name="resolve" checked={resolve === value} onChange={() => onResolve(value)} />
              {label}
            </label>
          ))}
        </div>
      </fieldset>
    </section>
  );
}

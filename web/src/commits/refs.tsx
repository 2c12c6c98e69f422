/** Dialogs that create and delete branches and tags. */
import { useState } from "preact/hooks";

import { announce } from "../kit/announce";
import { Field, FormDialog } from "../kit/FormDialog";
import { Plain } from "../kit/Plain";
import { source, written } from "../state/context";
import { go, link } from "../state/location";
import { commitText } from "../text/commits";

interface Closing {
  onClose(): void;
}

/** The start of a branch: the head of another one, or a commit. */
export type Start = { readonly branch: string } | { readonly at: string };

export function NewBranchDialog({ start, onClose }: Closing & { start: Start }) {
  const words = commitText.newBranch;
  const [name, setName] = useState("");
  const trimmed = name.trim();
  return (
    <FormDialog
      title={words.title}
      submit={words.create}
      ready={trimmed !== ""}
      onClose={onClose}
      run={async () => {
        await source.history.createBranch(link.value.graph, trimmed, start);
        announce(words.done(trimmed));
        written.value += 1;
        go({ ref: trimmed });
      }}
    >
      <p class="muted">
        <Plain text={words.from("branch" in start ? start.branch : start.at)} />
      </p>
      <Field label={commitText.name} value={name} onValue={setName} help={words.help} />
    </FormDialog>
  );
}

export function NewTagDialog({ commit, onClose }: Closing & { commit: string }) {
  const words = commitText.newTag;
  const [name, setName] = useState("");
  const [message, setMessage] = useState("");
  const trimmed = name.trim();
  return (
    <FormDialog
      title={words.title}
      submit={words.create}
      ready={trimmed !== ""}
      onClose={onClose}
      run={async () => {
        await source.history.createTag(link.value.graph, trimmed, commit, message.trim());
        announce(words.done(trimmed));
        written.value += 1;
      }}
    >
      <p class="muted">{words.from(commit)}</p>
      <Field label={commitText.name} value={name} onValue={setName} />
      <Field label={commitText.message} value={message} onValue={setMessage} optional />
    </FormDialog>
  );
}

/** Deletes a branch. One with commits of its own asks for its name, also if the server alone knows of them. */
export function DeleteBranchDialog({ name, ahead, onClose }: Closing & { name: string; ahead: number }) {
  const words = commitText.deleteBranch;
  const [typed, setTyped] = useState("");
  const [unmerged, setUnmerged] = useState(ahead > 0);
  return (
    <FormDialog
      title={words.title(name)}
      submit={words.run}
      danger
      ready={!unmerged || typed === name}
      onClose={onClose}
      onProblem={(problem) => {
        const asks = problem.code === "unmerged_branch" && !unmerged;
        if (asks) setUnmerged(true);
        return asks;
      }}
      run={async () => {
        await source.history.deleteBranch(link.value.graph, name, unmerged);
        announce(words.done(name));
        if (link.value.ref === name) go({ ref: "main" });
        written.value += 1;
      }}
    >
      <p class="muted">{unmerged ? words.unmerged(Math.max(ahead, 1)) : words.merged}</p>
      {unmerged ? <Field label={words.confirm(name)} value={typed} onValue={setTyped} mono /> : null}
    </FormDialog>
  );
}

export function DeleteTagDialog({ name, onClose }: Closing & { name: string }) {
  const words = commitText.deleteTag;
  return (
    <FormDialog
      title={words.title(name)}
      submit={words.run}
      danger
      ready
      onClose={onClose}
      run={async () => {
        await source.history.deleteTag(link.value.graph, name);
        announce(words.done(name));
        written.value += 1;
      }}
    >
      <p class="muted">{words.explain}</p>
    </FormDialog>
  );
}

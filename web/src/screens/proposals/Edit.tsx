/** Changes of a proposal by its author: title, text, reviewers, labels, draft, close and reopen. */
import { useState } from "preact/hooks";

import type { ProposalOutput } from "../../api/proposalTypes";
import { Dialog } from "../../kit/Dialog";
import { Icon } from "../../kit/Icon";
import { Menu, type MenuItem } from "../../kit/Menu";
import { ProblemBox } from "../../kit/ProblemBox";
import { closeProposal, editProposal, reopenProposal } from "../../source/proposals";
import { config } from "../../state/context";
import { text as common } from "../../text/en";
import { proposalText as text } from "../../text/proposals";
import { isOpen, namesOf, useAttempt } from "./state";

interface Props {
  graph: string;
  proposal: ProposalOutput;
  reload(): void;
}

export function EditMenu({ graph, proposal, reload }: Props) {
  const [open, setOpen] = useState<"edit" | "close" | null>(null);
  const attempt = useAttempt(reload);
  const words = text.edit;
  if (config.read_only || proposal.state === "landed") return null;
  const items: MenuItem[] = isOpen(proposal)
    ? [
        { label: words.start, run: () => setOpen("edit") },
        { label: proposal.draft ? words.publish : words.draft, run: () => void attempt.run(() => editProposal(graph, proposal.id, { draft: !proposal.draft })) },
        { label: words.closeTitle, run: () => setOpen("close") },
      ]
    : [{ label: words.reopen, run: () => void attempt.run(() => reopenProposal(graph, proposal.id)) }];
  return (
    <>
      <Menu end bare class="button icon" label={words.more} button={<Icon name="more" />} items={items} />
      {open === "edit" ? <EditDialog graph={graph} proposal={proposal} reload={reload} onClose={() => setOpen(null)} /> : null}
      {open === "close" ? <CloseDialog graph={graph} proposal={proposal} reload={reload} onClose={() => setOpen(null)} /> : null}
      {attempt.problem === null ? null : (
        <Dialog title={words.more} onClose={attempt.clear}>
          <ProblemBox problem={attempt.problem} />
          <div class="actions">
            <button type="button" class="button" onClick={attempt.clear}>
              {common.close}
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function EditDialog({ graph, proposal, reload, onClose }: Props & { onClose(): void }) {
  const words = text.create;
  const [title, setTitle] = useState(proposal.title);
  const [body, setBody] = useState(proposal.body ?? "");
  const [reviewers, setReviewers] = useState(proposal.reviewers.join(", "));
  const [labels, setLabels] = useState(proposal.labels.join(", "));
  const attempt = useAttempt(reload);
  const save = async () => {
    if (await attempt.run(() => editProposal(graph, proposal.id, { title: title.trim(), body, reviewers: namesOf(reviewers), labels: namesOf(labels) }))) onClose();
  };
  const field = (label: string, value: string, set: (value: string) => void) => (
    <label class="field">
      <span class="label">{label}</span>
      <input class="input" type="text" value={value} onInput={(event) => set(event.currentTarget.value)} />
    </label>
  );
  return (
    <Dialog title={text.edit.title} onClose={onClose} wide>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        {field(words.name, title, setTitle)}
        <label class="field">
          <span class="label">{words.body}</span>
          <textarea class="input" rows={7} value={body} onInput={(event) => setBody(event.currentTarget.value)} />
        </label>
        {field(words.reviewers, reviewers, setReviewers)}
        {field(words.labels, labels, setLabels)}
        {attempt.problem === null ? null : <ProblemBox problem={attempt.problem} />}
        <div class="actions">
          <button type="button" class="button" onClick={onClose}>
            {common.cancel}
          </button>
          <button type="submit" class="button primary" disabled={attempt.running || title.trim() === ""}>
            {text.edit.save}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function CloseDialog({ graph, proposal, reload, onClose }: Props & { onClose(): void }) {
  const [why, setWhy] = useState("");
  const attempt = useAttempt(reload);
  return (
    <Dialog title={text.edit.closeTitle} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void attempt.run(() => closeProposal(graph, proposal.id, why.trim())).then((done) => (done ? onClose() : undefined));
        }}
      >
        <label class="field">
          <span class="label">{text.edit.why}</span>
          <input class="input" type="text" value={why} onInput={(event) => setWhy(event.currentTarget.value)} />
        </label>
        {attempt.problem === null ? null : <ProblemBox problem={attempt.problem} />}
        <div class="actions">
          <button type="button" class="button" onClick={onClose}>
            {common.cancel}
          </button>
          <button type="submit" class="button danger" disabled={attempt.running}>
            {text.edit.close}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** A new proposal of a branch: `proposals?new=1&source=<branch>&target=<branch>`. */
import { useState } from "preact/hooks";

import { Loading, useLoad } from "../../kit/load";
import { ProblemBox } from "../../kit/ProblemBox";
import { propose } from "../../source/proposals";
import { source } from "../../state/context";
import { MAIN } from "../../state/link";
import { go, href, link } from "../../state/location";
import { proposalText as text } from "../../text/proposals";
import { text as common } from "../../text/en";
import { namesOf, setParams, useAttempt } from "./state";

export function NewProposalForm({ graph }: { graph: string }) {
  const loaded = useLoad(graph, (signal) => source.branches(graph, signal));
  return (
    <div class="proposals stack">
      <h1>{text.create.title}</h1>
      <Loading of={loaded}>{(branches) => (branches.length < 2 ? <p class="empty">{text.create.noBranch}</p> : <Form graph={graph} branches={branches} />)}</Loading>
    </div>
  );
}

function Form({ graph, branches }: { graph: string; branches: readonly string[] }) {
  const words = text.create;
  const { params, ref } = link.value;
  const target = params["target"] ?? MAIN;
  const others = branches.filter((name) => name !== target);
  const asked = params["source"] ?? (others.includes(ref) ? ref : undefined);
  const from = asked !== undefined && others.includes(asked) ? asked : (others[0] ?? "");
  const [title, setTitle] = useState("");
  const [body, setBody] = useState("");
  const [reviewers, setReviewers] = useState("");
  const [labels, setLabels] = useState("");
  const [draft, setDraft] = useState(false);
  const attempt = useAttempt(() => undefined);
  const send = () =>
    attempt.run(async () => {
      const made = await propose(graph, { source: from, target, title: title.trim(), ...(body.trim() === "" ? {} : { body }), reviewers: namesOf(reviewers), labels: namesOf(labels), draft });
      go({ path: [made.id], params: {} });
    });
  const choice = (label: string, name: "source" | "target", value: string, names: readonly string[]) => (
    <label class="field grow">
      <span class="label">{label}</span>
      <select class="select wide-select" value={value} onChange={(event) => setParams({ [name]: event.currentTarget.value })}>
        {names.map((each) => (
          <option value={each} key={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <form
      class="card body stack proposal-form"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <div class="row wrap">
        {choice(words.source, "source", from, others)}
        {choice(words.target, "target", target, branches)}
      </div>
      <label class="field">
        <span class="label">{words.name}</span>
        <input class="input" type="text" required maxLength={300} value={title} onInput={(event) => setTitle(event.currentTarget.value)} />
      </label>
      <label class="field">
        <span class="label">{words.body}</span>
        <textarea class="input" rows={6} value={body} onInput={(event) => setBody(event.currentTarget.value)} />
        <span class="help">{words.bodyHelp}</span>
      </label>
      <div class="row wrap">
        <label class="field grow">
          <span class="label">{words.reviewers}</span>
          <input class="input" type="text" placeholder={words.several} value={reviewers} onInput={(event) => setReviewers(event.currentTarget.value)} />
        </label>
        <label class="field grow">
          <span class="label">{words.labels}</span>
          <input class="input" type="text" placeholder={words.several} value={labels} onInput={(event) => setLabels(event.currentTarget.value)} />
        </label>
      </div>
      <label class="row check">
        <input type="checkbox" checked={draft} onChange={(event) => setDraft(event.currentTarget.checked)} />
        {words.draft}
      </label>
      {attempt.problem === null ? null : <ProblemBox problem={attempt.problem} />}
      <div class="row">
        <button type="submit" class="button primary" disabled={attempt.running || title.trim() === "" || from === ""}>
          {words.create}
        </button>
        <a class="button" href={href({ path: [], params: {} })}>
          {common.cancel}
        </a>
      </div>
    </form>
  );
}

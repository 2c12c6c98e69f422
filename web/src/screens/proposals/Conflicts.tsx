/** The conflicts of a proposal. Preview stores the choices, tries the merge and runs the checks; nothing lands. */
import { useState } from "preact/hooks";

import type { ProposalOutput } from "../../api/proposalTypes";
import type { MergeConflictOutput } from "../../api/reviewTypes";
import type { CatalogOutput } from "../../api/types";
import { Loading, useLoad } from "../../kit/load";
import { ProblemBox } from "../../kit/ProblemBox";
import { conflictState, ConflictView, type ConflictSides } from "../../review/ConflictView";
import { proposalEvents, resolveConflicts } from "../../source/proposals";
import { config, source } from "../../state/context";
import { resolveOf, type Choices } from "../../state/choices";
import { proposalText as text } from "../../text/proposals";
import { isOpen, useAttempt } from "./state";

interface Props {
  graph: string;
  proposal: ProposalOutput;
  reload(): void;
}

interface Found {
  readonly conflicts: readonly MergeConflictOutput[];
  readonly hidden: number;
  /** The choices of the log. */
  readonly stored: Choices;
  readonly sides: ConflictSides;
  readonly catalog: CatalogOutput;
}

export function Conflicts(props: Props) {
  const { graph, proposal } = props;
  const gone = proposal.source_head === null || proposal.target_head === null;
  const loaded = useLoad(gone || !isOpen(proposal) ? null : `${proposal.id} ${proposal.target_head} ${proposal.source_head}`, (signal) => readConflicts(graph, proposal, signal));
  if (!isOpen(proposal)) return <p class="empty">{text.conflict.none}</p>;
  if (gone) return <p class="empty">{text.conflict.gone}</p>;
  return <Loading of={loaded}>{(found) => <Open {...props} found={found} />}</Loading>;
}

/** Returns all conflicts of the branches, whatever was chosen, and the choices of the log. */
async function readConflicts(graph: string, proposal: ProposalOutput, signal: AbortSignal): Promise<Found> {
  const [ours, theirs, { events }] = await Promise.all([source.resolve(graph, proposal.target, signal), source.resolve(graph, proposal.source, signal), proposalEvents(graph, proposal.id, signal)]);
  const request = { graph, source: proposal.source, target: proposal.target, sourceCommit: theirs.commit, resolve: null };
  const [plan, catalog] = await Promise.all([source.review.mergePreview(request, signal), source.catalog(ours, signal)]);
  const stored = events.filter((event) => event.kind === "resolution").at(-1)?.data["resolve"];
  return {
    conflicts: plan.conflicts,
    hidden: plan.hidden_conflicts ?? 0,
    stored: choicesOf(stored),
    sides: { ours: { name: proposal.target, place: ours }, theirs: { name: proposal.source, place: theirs } },
    catalog,
  };
}

/** The choices of a stored value: a word is the choice for all conflicts. */
function choicesOf(stored: unknown): Choices {
  if (typeof stored === "string") return { "*": stored } as Choices;
  return typeof stored === "object" && stored !== null ? (stored as Choices) : {};
}

function Open({ graph, proposal, reload, found }: Props & { found: Found }) {
  const words = text.conflict;
  const [choices, setChoices] = useState<Choices>(found.stored);
  const [previewed, setPreviewed] = useState<Choices | null>(Object.keys(found.stored).length === 0 ? null : found.stored);
  const attempt = useAttempt(reload);
  const send = (next: Choices) =>
    attempt.run(async () => {
      await resolveConflicts(graph, proposal.id, resolveOf(next));
      setPreviewed(next);
    });
  if (found.conflicts.length === 0) return <p class="empty">{found.hidden > 0 ? words.hidden(found.hidden) : words.none}</p>;
  const current = previewed !== null && JSON.stringify(previewed) === JSON.stringify(choices);
  const left = current ? (proposal.trial?.conflicts ?? 0) : found.conflicts.filter((conflict) => conflictState(conflict, choices) !== "settled").length;
  const settled = new Map(current && left === 0 ? found.conflicts.map((conflict) => [conflict.id, null] as const) : []);
  return (
    <div class="stack pad">
      <div class="row wrap spread">
        <span class={left === 0 ? "good-text" : "muted"} aria-live="polite">
          {left > 0 ? words.left(left) : current ? words.done : words.explain}
        </span>
        <span class="row wrap">
          {Object.keys(choices).length === 0 ? null : (
            <button
              type="button"
              class="button"
              disabled={attempt.running || config.read_only}
              onClick={() => {
                setChoices({});
                if (previewed !== null) void send({});
              }}
            >
              {words.reset}
            </button>
          )}
          <button type="button" class="button primary" title={words.explain} disabled={attempt.running || config.read_only || Object.keys(choices).length === 0 || current} onClick={() => void send(choices)}>
            {attempt.running ? words.previewing : words.preview}
          </button>
        </span>
      </div>
      {found.hidden > 0 ? <p class="muted">{words.hidden(found.hidden)}</p> : null}
      {attempt.problem === null ? null : <ProblemBox problem={attempt.problem} />}
      <ConflictView conflicts={found.conflicts} choices={choices} onChoices={setChoices} sides={found.sides} catalog={found.catalog} settled={settled} />
    </div>
  );
}

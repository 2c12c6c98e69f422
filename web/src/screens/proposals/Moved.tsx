/** A source that moved since it was looked at: its new commits, and the way to only their changes. */
import type { ProposalOutput } from "../../api/proposalTypes";
import { useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { Time } from "../../kit/Time";
import { source } from "../../state/context";
import { link } from "../../state/location";
import { proposalText as text } from "../../text/proposals";
import { isOpen, setParams } from "./state";

const COMMITS = 20;

export const hasMoved = (proposal: ProposalOutput, looked: string | null): boolean =>
  isOpen(proposal) && looked !== null && proposal.source_head !== null && proposal.source_head !== looked;

interface Props {
  graph: string;
  proposal: ProposalOutput;
  looked: string | null;
  onLooked(commit: string): void;
}

export function Moved({ graph, proposal, looked, onLooked }: Props) {
  const moved = hasMoved(proposal, looked);
  const commits = useLoad(moved ? `${looked} ${proposal.source_head}` : null, (signal) => source.review.commitsSince(graph, proposal.source, looked ?? "", COMMITS, signal)).value;
  if (!moved || commits === undefined) return null;
  return (
    <section class="card body moved stack tight" role="status">
      <p>
        <strong>
          <Plain text={text.moved.title(proposal.source, commits.length)} />
        </strong>{" "}
        {text.moved.explain}
      </p>
      <ul class="list">
        {commits.map((commit) => (
          <li key={commit.graph_commit_id} class="row wrap">
            <code class="muted">{commit.graph_commit_id.slice(-6)}</code>
            <span class="grow">{commit.message === null ? commit.kind : <Plain text={commit.message} />}</span>
            <span class="muted">{commit.actor_id === null ? "" : <Plain text={commit.actor_id} />}</span>
            <Time at={commit.created_at} />
          </li>
        ))}
      </ul>
      <div class="row wrap">
        {link.value.params["new"] === "only" ? null : (
          <button type="button" class="button" onClick={() => setParams({ tab: "changes", new: "only", row: "" })}>
            {text.moved.show}
          </button>
        )}
        <button
          type="button"
          class="button"
          onClick={() => {
            onLooked(proposal.source_head ?? "");
            setParams({ new: "" });
          }}
        >
          {text.moved.accept}
        </button>
      </div>
    </section>
  );
}

/** The open proposals of a graph, on its home page. */
import type { ProposalListOutput } from "../../api/proposalTypes";
import { Loading, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { Time } from "../../kit/Time";
import { source } from "../../state/context";
import { href } from "../../state/location";
import { openProposals } from "../../state/proposals";
import { text } from "../../text/en";

const SHOWN = 5;

export function HomeProposals({ graph }: { graph: string }) {
  const loaded = useLoad(`${graph} ${openProposals.value}`, (signal) => source.ask<ProposalListOutput>(graph, "proposals", { params: { limit: SHOWN }, signal }));
  if (loaded.value?.proposals.length === 0) return null;
  return (
    <section class="card">
      <header>
        <h2>{text.home.proposals}</h2>
        <a href={href({ screen: "proposals", path: [], params: {} })}>{text.home.allProposals}</a>
      </header>
      <Loading of={loaded}>
        {({ proposals }) => (
          <ul class="list">
            {proposals.map((proposal) => (
              <li key={proposal.id}>
                <a class="item" href={href({ screen: "proposals", path: [proposal.id], params: {} })}>
                  <span class="grow cut">
                    <strong>
                      <Plain text={proposal.title} />
                    </strong>{" "}
                    <span class="muted">
                      <Plain text={`${proposal.source} → ${proposal.target}`} />
                    </span>
                  </span>
                  {(proposal.trial?.conflicts ?? 0) > 0 ? <span class="badge bad">{text.home.conflicts(proposal.trial?.conflicts ?? 0)}</span> : <span class="badge">{proposal.state}</span>}
                  <Time at={proposal.updated_at} />
                </a>
              </li>
            ))}
          </ul>
        )}
      </Loading>
    </section>
  );
}

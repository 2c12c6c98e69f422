/** Proposals: the list, a new one, and one proposal (`proposals/<id>`). */
import { useEffect } from "preact/hooks";

import { Skeleton } from "../../kit/load";
import { followProposals } from "../../source/proposals";
import { place } from "../../state/context";
import { link } from "../../state/location";
import { proposalsChanged } from "../../state/proposals";
import { ProposalList } from "./List";
import { NewProposalForm } from "./NewProposal";
import { ProposalPage } from "./Proposal";

export default function Proposals() {
  const here = place.value;
  const { graph, path, params } = link.value;
  useEffect(() => {
    const abort = new AbortController();
    void followProposals(graph, () => (proposalsChanged.value += 1), abort.signal);
    return () => abort.abort();
  }, [graph]);
  if (here === null) return <Skeleton />;
  const [id] = path;
  if (id !== undefined) return <ProposalPage key={id} graph={graph} id={id} />;
  return params["new"] === undefined ? <ProposalList graph={graph} /> : <NewProposalForm graph={graph} />;
}

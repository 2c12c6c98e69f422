/** The changes that would land, with the comments on their rows; or only those of new commits. */
import { useMemo } from "preact/hooks";

import type { CommentListOutput, ProposalOutput } from "../../api/proposalTypes";
import type { RowChangeOutput } from "../../api/reviewTypes";
import { Loading, useLoad, type Loaded } from "../../kit/load";
import { DiffView, type DiffParams } from "../../review/DiffView";
import { listReader } from "../../review/listReader";
import { commitReader, type DiffReader } from "../../review/reader";
import { proposalChanges, type ChangePage } from "../../source/proposals";
import { place, source } from "../../state/context";
import { link } from "../../state/location";
import { proposalText as text } from "../../text/proposals";
import { RowComments } from "./Comments";
import { hasMoved } from "./Moved";
import { setParams } from "./state";

interface Props {
  graph: string;
  proposal: ProposalOutput;
  looked: string | null;
  reload(): void;
  comments: Loaded<CommentListOutput>;
}

export function Changes(props: Props) {
  const { graph, proposal, looked } = props;
  const onlyNew = link.value.params["new"] === "only" && hasMoved(proposal, looked);
  const shown = JSON.stringify([proposal.id, proposal.trial?.commit, proposal.source_head, proposal.landed]);
  const first = useLoad(onlyNew ? null : shown, (signal) => proposalChanges(graph, proposal.id, undefined, signal));
  const points = { graph, from: looked ?? "", to: proposal.source_head ?? "", base: false };
  const newReader = useMemo(() => (onlyNew ? commitReader(points, proposal.source) : null), [onlyNew, looked, proposal.source_head]);
  if (newReader !== null) {
    return (
      <>
        <div class="row wrap pad">
          <span>{text.moved.onlyNew}</span>
          <button type="button" class="button small" onClick={() => setParams({ new: "", row: "" })}>
            {text.moved.all}
          </button>
        </div>
        <View {...props} reader={newReader} />
      </>
    );
  }
  return <Loading of={first}>{(page) => <Landing {...props} page={page} key={`${page.from_commit_id} ${page.to_commit_id}`} />}</Loading>;
}

function Landing({ page, ...props }: Props & { page: ChangePage }) {
  const { graph, proposal } = props;
  const catalog = useCatalog();
  const reader = useMemo(
    () =>
      listReader({
        key: `${page.from_commit_id} ${page.to_commit_id}`,
        fromCommit: page.from_commit_id,
        toCommit: page.to_commit_id,
        beforeRef: `@${page.from_commit_id}`,
        afterRef: `@${page.to_commit_id}`,
        schemaSteps: page.schema_steps,
        catalog,
        page: async (_, after, signal) => (after === undefined ? page : proposalChanges(graph, proposal.id, after, signal)),
      }),
    [page, catalog],
  );
  return <View {...props} reader={reader} />;
}

function useCatalog() {
  const here = place.value;
  return useLoad(here === null ? null : here.commit, (signal) => source.catalog(here as NonNullable<typeof here>, signal)).value;
}

function View({ reader, comments, graph, proposal, reload }: Props & { reader: DiffReader }) {
  const catalog = useCatalog();
  const below = (change: RowChangeOutput) => (
    <RowComments graph={graph} proposal={proposal} reload={reload} comments={comments.value} place={{ table_key: change.table_key, row_id: change.id }} properties={Object.keys(change.after ?? change.before ?? {}).filter((name) => name !== "id")} />
  );
  return <DiffView reader={reader} catalog={catalog} params={link.value.params as DiffParams} onParams={setParams} below={below} />;
}

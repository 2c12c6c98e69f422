/** The history of a graph: commits of all branches as lanes, with filters; a row opens. */
import { useEffect, useState } from "preact/hooks";

import { problemOf, type Problem } from "../../api/problem";
import type { CommitListOutput, CommitOutput } from "../../api/types";
import { Loading, Skeleton, useLoad } from "../../kit/load";
import { ProblemBox } from "../../kit/ProblemBox";
import { EVERY_BRANCH } from "../../source/history";
import { place, source } from "../../state/context";
import { MAIN } from "../../state/link";
import { link } from "../../state/location";
import { historyText as text } from "../../text/history";
import { CommitDetail } from "./CommitDetail";
import { CommitList } from "./CommitList";
import { Filters, filterOf, hasConditions } from "./Filters";

const PAGE = 60;

export default function History() {
  const here = place.value;
  const { graph, params } = link.value;
  const filter = filterOf(params);
  const key = here === null ? null : JSON.stringify([graph, here.commit, filter]);
  const first = useLoad(key, (signal) => source.history.list(graph, filter, PAGE, undefined, signal));
  return (
    <div class="stack history">
      <h1 class="visually-hidden">{text.title}</h1>
      <section class="card">
        <Filters />
        {here === null ? <Skeleton /> : <Loading of={first}>{(list) => <Pages key={key} first={list} />}</Loading>}
      </section>
    </div>
  );
}

/** The commit of the link, if it is not among those that are listed. */
function LinkedCommit({ listed }: { listed: readonly CommitOutput[] }) {
  const { graph, params } = link.value;
  const id = params["commit"];
  const hidden = id !== undefined && !listed.some((commit) => commit.graph_commit_id === id);
  const loaded = useLoad(hidden ? `${graph} ${id}` : null, (signal) => source.history.commit(graph, id ?? "", signal));
  if (!hidden) return null;
  return (
    <div class="linked-commit">
      <Loading of={loaded}>{(commit) => <CommitDetail commit={commit} />}</Loading>
    </div>
  );
}

/** The first page and those that were loaded after it. */
function Pages({ first }: { first: CommitListOutput }) {
  const { graph, params } = link.value;
  const filter = filterOf(params);
  const [pages, setPages] = useState<readonly CommitListOutput[]>([first]);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [loading, setLoading] = useState(false);
  useEffect(() => setPages([first]), [first]);
  const commits = pages.flatMap((page) => page.commits);
  const next = pages.at(-1)?.next;
  const more = async () => {
    setLoading(true);
    try {
      const page = await source.history.list(graph, filter, PAGE, next);
      setPages([...pages, page]);
      setProblem(null);
    } catch (error) {
      setProblem(problemOf(error));
    }
    setLoading(false);
  };
  if (commits.length === 0) {
    return (
      <div class="empty">
        <strong>{text.none}</strong>
        <span>{text.noneHint}</span>
      </div>
    );
  }
  const laned = !hasConditions(filter);
  return (
    <>
      <LinkedCommit listed={commits} />
      <CommitList commits={commits} heads={first.heads ?? {}} tags={first.tags ?? {}} laned={laned} branch={filter.branch === EVERY_BRANCH ? MAIN : filter.branch} />
      {problem === null ? null : <ProblemBox problem={problem} />}
      <footer class="row wrap pad">
        {next === undefined ? null : (
          <button type="button" class="button" disabled={loading} onClick={() => void more()}>
            {text.more}
          </button>
        )}
        <span class="muted small">
          {next === undefined ? text.end(commits.length) : text.shown(commits.length)}
          {laned ? "" : `. ${text.filtered}`}
        </span>
      </footer>
    </>
  );
}

/** Commits as rows: lanes, message, names of branches and tags, actor, time. A row opens its detail. */
import { useEffect, useMemo, useRef } from "preact/hooks";

import type { CommitOutput } from "../../api/types";
import { Icon } from "../../kit/Icon";
import { Plain } from "../../kit/Plain";
import { Time } from "../../kit/Time";
import { MAIN } from "../../state/link";
import { link, replace } from "../../state/location";
import { historyText as text } from "../../text/history";
import { CommitDetail } from "./CommitDetail";
import { branchKind, LaneColumn, laneWidth } from "./LaneColumn";
import { laneCount, lanesBelow, layLanes, type LaneCommit, type LaneRow } from "./lanes";

export const branchOf = (commit: CommitOutput): string => commit.manifest_branch ?? MAIN;

export const parentsOf = (commit: CommitOutput): readonly string[] =>
  [commit.parent_commit_id, commit.merged_parent_commit_id].filter((id): id is string => id !== null);

interface Props {
  commits: readonly CommitOutput[];
  heads: Readonly<Record<string, string>>;
  tags: Readonly<Record<string, string>>;
  /** False if the list has gaps: then rows have dots, not lanes. */
  laned: boolean;
  /** The branch in the first lane. */
  branch: string;
}

export function CommitList({ commits, heads, tags, laned, branch }: Props) {
  const rows = useMemo(() => lay(commits, laned, heads[branch] ?? commits[0]?.graph_commit_id), [commits.length, commits[0], commits.at(-1), laned]);
  const width = laneWidth(laneCount(rows));
  const open = link.value.params["commit"];
  const opened = useRef<HTMLLIElement>(null);
  useEffect(() => opened.current?.scrollIntoView({ block: "nearest" }), [open]);
  return (
    <ol class="commits" aria-label={text.list}>
      {commits.map((commit, at) => {
        const row = rows[at] as LaneRow;
        const id = commit.graph_commit_id;
        const isOpen = open === id;
        return (
          <li key={id} class={isOpen ? "open" : ""} ref={isOpen ? opened : null}>
            <CommitLine commit={commit} row={row} width={width} isOpen={isOpen} branches={namesOf(heads, id)} tags={namesOf(tags, id)} />
            {isOpen ? (
              <div class="commit-open">
                <LaneColumn width={width} lines={lanesBelow(row).map((line) => ({ ...line, part: "past" as const }))} stretched />
                <CommitDetail commit={commit} />
              </div>
            ) : null}
          </li>
        );
      })}
    </ol>
  );
}

function lay(commits: readonly CommitOutput[], laned: boolean, first: string | undefined): readonly LaneRow[] {
  const listed = commits.map((commit): LaneCommit => ({ id: commit.graph_commit_id, parents: laned ? parentsOf(commit) : [], branch: branchOf(commit) }));
  return layLanes(listed, laned ? first : undefined);
}

const namesOf = (of: Readonly<Record<string, string>>, id: string): readonly string[] =>
  Object.keys(of)
    .filter((name) => of[name] === id)
    .sort();

interface LineProps {
  commit: CommitOutput;
  row: LaneRow;
  width: number;
  isOpen: boolean;
  branches: readonly string[];
  tags: readonly string[];
}

function CommitLine({ commit, row, width, isOpen, branches, tags }: LineProps) {
  const id = commit.graph_commit_id;
  const { commit: _, ...params } = link.value.params;
  return (
    <div class="commit-line">
      <LaneColumn width={width} lines={row.lines} dot={{ lane: row.lane, branch: row.branch, merge: parentsOf(commit).length > 1 }} />
      <button type="button" class="commit-button" aria-expanded={isOpen} title={text.lane(branchOf(commit), parentsOf(commit).length > 1)} onClick={() => replace({ params: isOpen ? params : { ...params, commit: id } })}>
        <span class="commit-message cut">{commit.message === null ? <span class="muted">{commit.kind}</span> : <Plain text={commit.message} />}</span>
        {branches.map((name) => (
          <span class={`chip ref lane-${branchKind(name)}`} key={name} title={text.head(name)}>
            <Icon name="branch" />
            <span class="cut">
              <Plain text={name} />
            </span>
          </span>
        ))}
        {tags.map((name) => (
          <span class="chip ref" key={name} title={text.tag(name)}>
            <Icon name="pin" />
            <span class="cut">
              <Plain text={name} />
            </span>
          </span>
        ))}
        <span class="grow" />
        <span class="muted cut actor">{commit.actor_id === null ? "" : <Plain text={commit.actor_id} />}</span>
        <code class="muted only-wide">{id.slice(-6)}</code>
        <Time at={commit.created_at} />
      </button>
    </div>
  );
}

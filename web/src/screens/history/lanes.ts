/**
 * Lanes of a history: which column each commit stands in, and which lines cross its row. A pure function of the commits,
 * newest first, and their parents.
 *
 * A lane waits for one commit. A commit takes the first lane that waits for it, else the first free one, and ends the
 * others. Its first parent goes on in its lane; a second parent takes the lane that waits for it already, else a free one.
 */

export interface LaneCommit {
  readonly id: string;
  /** The first parent, then the merged one. Parents that are not listed leave their line open. */
  readonly parents: readonly string[];
  /** The branch on which the commit was made. */
  readonly branch: string;
}

/** A line of a row: into the commit from above, out of it to below, or past it. */
export interface LaneLine {
  readonly part: "in" | "out" | "past";
  /** The other lane: where the line enters from above, or leaves below. */
  readonly lane: number;
  readonly branch: string;
}

export interface LaneRow {
  readonly id: string;
  readonly lane: number;
  readonly branch: string;
  readonly lines: readonly LaneLine[];
}

interface Waiting {
  readonly id: string;
  readonly branch: string;
  /** False until a commit above the row needs the lane: a reserved lane is empty above its head. */
  readonly drawn: boolean;
}

/** Returns the rows of commits. `first` is the head that takes the first lane, even if others are newer. */
export function layLanes(commits: readonly LaneCommit[], first?: string): readonly LaneRow[] {
  const branches = new Map(commits.map((commit) => [commit.id, commit.branch]));
  const lanes: (Waiting | null)[] = [];
  if (first !== undefined && branches.has(first)) lanes.push({ id: first, branch: branches.get(first) as string, drawn: false });
  return commits.map((commit) => layRow(commit, lanes, branches));
}

function layRow(commit: LaneCommit, lanes: (Waiting | null)[], branches: ReadonlyMap<string, string>): LaneRow {
  const waiting = lanes.findIndex((each) => each?.id === commit.id);
  const lane = waiting < 0 ? freeLane(lanes) : waiting;
  const lines: LaneLine[] = [];
  lanes.forEach((each, at) => {
    if (each === null) return;
    if (each.id === commit.id) lanes[at] = null;
    if (each.drawn) lines.push({ part: each.id === commit.id ? "in" : "past", lane: at, branch: each.branch });
  });
  const [parent, ...merged] = commit.parents;
  if (parent !== undefined) {
    lanes[lane] = { id: parent, branch: commit.branch, drawn: true };
    lines.push({ part: "out", lane, branch: commit.branch });
  }
  for (const id of merged) {
    const known = lanes.findIndex((each, at) => at !== lane && each?.id === id && each.drawn);
    const branch = branches.get(id) ?? commit.branch;
    const to = known < 0 ? freeLane(lanes, id) : known;
    if (known < 0) lanes[to] = { id, branch, drawn: true };
    lines.push({ part: "out", lane: to, branch });
  }
  while (lanes.length > 0 && lanes.at(-1) === null) lanes.pop();
  return { id: commit.id, lane, branch: commit.branch, lines };
}

/** Returns a free lane, for a commit that a reserved lane waits for that lane. */
function freeLane(lanes: readonly (Waiting | null)[], id?: string): number {
  const at = lanes.findIndex((each) => each === null || (id !== undefined && each.id === id && !each.drawn));
  return at < 0 ? lanes.length : at;
}

/** Returns the lanes that go on below a row. */
export function lanesBelow(row: LaneRow): readonly LaneLine[] {
  return row.lines.filter((line) => line.part !== "in");
}

/** Returns the number of lanes of some rows. */
export function laneCount(rows: readonly LaneRow[]): number {
  return rows.reduce((most, row) => Math.max(most, row.lane + 1, ...row.lines.map((line) => line.lane + 1)), 1);
}

/** The rules behind a denied request, and the commits behind a lost race. */
import type { CommitOutput } from "../api/types";
import { isDenied, type Problem } from "../api/problem";
import type { Place } from "../source/source";
import { place, source } from "../state/context";
import { denialOf } from "../state/denial";
import { href, link } from "../state/location";
import { problemWords as words } from "../text/problem";
import { useLoad } from "./load";
import { Plain } from "./Plain";
import { Time } from "./Time";

const COMMITS = 10;

export default function ProblemMore({ problem }: { problem: Problem }) {
  return isDenied(problem) ? <Denied problem={problem} /> : <Moved problem={problem} />;
}

interface DenialMembers {
  reasons?: readonly string[];
  rules?: readonly string[];
}

function Denied({ problem }: { problem: Problem }) {
  const { reasons = [], rules = [] } = (problem.document["denial"] ?? {}) as DenialMembers;
  const denial = denialOf(problem.message);
  return (
    <section class="problem-more" aria-label={words.reasons}>
      {reasons.length === 0 ? <p>{words.noReason}</p> : null}
      <ul>
        {reasons.map((reason) => (
          <li key={reason}>
            <Plain text={reason} />
          </li>
        ))}
      </ul>
      {rules.length === 0 ? null : (
        <p>
          {words.near}{" "}
          {rules.map((rule) => (
            <code key={rule}>
              <Plain text={rule} />{" "}
            </code>
          ))}
        </p>
      )}
      {denial === null ? null : <a href={href({ screen: "admin", path: [], params: { tab: "access", action: denial.action, on: denial.branch ?? "" } })}>{words.inAdmin}</a>}
    </section>
  );
}

interface Precondition {
  expected?: string;
  actual?: string | null;
  branch?: string;
}

/** The commits of the branch since the one that the page knew. */
function Moved({ problem }: { problem: Problem }) {
  const failed = (problem.document["precondition_failure"] ?? {}) as Precondition;
  const here = place.value;
  const branch = failed.branch ?? here?.branch ?? null;
  const known = failed.expected ?? here?.commit;
  const graph = link.value.graph;
  const key = here === null || branch === null ? null : JSON.stringify([graph, branch, known, problem.requestId]);
  const loaded = useLoad(key, (signal) => source.commits({ ...(here as Place), ref: branch ?? "", branch }, COMMITS, undefined, signal));
  const commits = newerThan(loaded.value?.commits ?? [], known);
  if (branch === null || commits.length === 0) return null;
  return (
    <section class="problem-more" aria-label={words.moved(branch)}>
      <p>
        <Plain text={words.moved(branch)} />
      </p>
      <ul>
        {commits.map((commit) => (
          <li key={commit.graph_commit_id}>
            <strong>
              <Plain text={commit.actor_id ?? words.unknown} />
            </strong>{" "}
            <Plain text={commit.message ?? commit.kind} /> {commit.changed.length === 0 ? null : <span class="muted">({commit.changed.join(", ")})</span>} <Time at={commit.created_at} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Returns the commits that are newer than a known one; all of them if it is not among them. */
export function newerThan(commits: readonly CommitOutput[], known: string | undefined): readonly CommitOutput[] {
  const at = commits.findIndex((commit) => commit.graph_commit_id === known);
  return at < 0 ? commits : commits.slice(0, at);
}

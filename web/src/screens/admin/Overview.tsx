/** The caller with its rights, and the load of the server as figures with their course. */
import type { ServerStatusOutput } from "../../api/adminTypes";
import type { MeOutput } from "../../api/types";
import { Skeleton } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { ProblemBox } from "../../kit/ProblemBox";
import { Sparkline } from "../../kit/Sparkline";
import { Time } from "../../kit/Time";
import { Value } from "../../kit/Value";
import { me } from "../../state/context";
import { link } from "../../state/location";
import { admin } from "../../text/admin";
import { bytesText } from "./format";
import { ratesOf, samples, status, statusProblem, type Sample } from "./samples";

const words = admin.me;

export function Overview() {
  const caller = me.value;
  return (
    <div class="stack">
      <div class="two">
        {caller === null ? <Skeleton /> : <Caller caller={caller} />}
        {caller === null ? null : <Rights caller={caller} />}
      </div>
      <Figures />
    </div>
  );
}

function Caller({ caller }: { caller: MeOutput }) {
  const attributes = Object.entries(caller.attributes);
  return (
    <section class="card" aria-labelledby="who">
      <header>
        <h2 id="who">{words.title}</h2>
      </header>
      <dl class="dl body">
        <dt>{words.actor}</dt>
        <dd>{caller.actor_id === null ? words.nobody : <Plain text={caller.actor_id} />}</dd>
        <dt>{words.groups}</dt>
        <dd>{caller.groups.length === 0 ? <span class="muted">{words.noGroups}</span> : <Chips of={caller.groups} />}</dd>
        {attributes.map(([name, value]) => (
          <>
            <dt>
              <Plain text={name} />
            </dt>
            <dd>
              <Value value={value} />
            </dd>
          </>
        ))}
        <dt>{words.expires}</dt>
        <dd>{caller.token_expires_at === undefined ? <span class="muted">{words.never}</span> : <Time at={caller.token_expires_at} />}</dd>
        <dt>{words.server}</dt>
        <dd>{caller.actions.length === 0 ? <span class="muted">{words.nothing}</span> : <Chips of={caller.actions} />}</dd>
      </dl>
    </section>
  );
}

function Chips({ of }: { of: readonly string[] }) {
  return (
    <span class="actions-list">
      {of.map((each) => (
        <span class="chip" key={each}>
          <Plain text={each} />
        </span>
      ))}
    </span>
  );
}

function Rights({ caller }: { caller: MeOutput }) {
  const graph = caller.graphs.find((each) => each.graph_id === link.value.graph);
  return (
    <section class="card" aria-labelledby="may">
      <header>
        <h2 id="may">{words.may}</h2>
      </header>
      <div class="scroll-x" tabIndex={0} role="region" aria-labelledby="may">
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">{words.branch}</th>
              <th scope="col">{words.actions}</th>
            </tr>
          </thead>
          <tbody>
            <tr>
              <th scope="row" class="muted">
                {words.onGraph}
              </th>
              <td>{graph === undefined || graph.actions.length === 0 ? <span class="muted">{words.nothing}</span> : <Chips of={graph.actions} />}</td>
            </tr>
            {(graph?.branches ?? []).map((each) => (
              <tr key={each.branch}>
                <th scope="row">
                  <Plain text={each.branch} />
                </th>
                <td>
                  <Chips of={each.actions} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Figures() {
  const now = status.value;
  const problem = statusProblem.value;
  const all = samples.value;
  const last = all.at(-1);
  if (problem !== null) return <ProblemBox problem={problem} />;
  if (now === null || last === undefined) return <Skeleton />;
  return (
    <section class="stack" aria-labelledby="figures">
      <div class="row wrap baseline">
        <h2 id="figures">{admin.figures.title}</h2>
        <ServerFacts now={now} />
        <span class="muted small">{admin.figures.since(all.length)}</span>
      </div>
      <div class="grid">
        {courses(all, now).map((each) => (
          <Figure key={each.label} {...each} />
        ))}
      </div>
    </section>
  );
}

function ServerFacts({ now }: { now: ServerStatusOutput }) {
  const { figures } = admin;
  const facts = [now.version, figures.mode(now.mode), figures.workers(now.workers), figures.uptime(admin.queries.s(now.uptime_s))];
  return (
    <>
      <span class="muted">{facts.join(" · ")}</span>
      {now.draining ? <span class="badge warn">{figures.draining}</span> : null}
    </>
  );
}

interface Course {
  readonly label: string;
  readonly values: readonly number[];
  show(value: number): string;
}

const whole = (value: number): string => Math.round(value).toLocaleString();
const rate = (value: number): string => value.toFixed(value < 10 ? 1 : 0);

/** The figures of the server, each with its values in the order of time. */
function courses(all: readonly Sample[], now: ServerStatusOutput): Course[] {
  const { figures } = admin;
  const limit = now.memory.limit_bytes;
  const memory = (value: number) => (limit === null ? bytesText(value) : figures.memoryOf(bytesText(value), bytesText(limit)));
  const hits = all.map((each) => (each.hits + each.misses === 0 ? 0 : (100 * each.hits) / (each.hits + each.misses)));
  const found: Course[] = [
    { label: figures.requests, values: all.map((each) => each.requests), show: whole },
    { label: figures.waiting, values: all.map((each) => each.waiting), show: whole },
    { label: figures.connections, values: all.map((each) => each.connections), show: whole },
    { label: figures.memory, values: all.map((each) => each.memory), show: memory },
    { label: figures.hits, values: hits, show: (value) => `${Math.round(value)} %` },
    { label: figures.refused, values: all.map((each) => each.rejected), show: whole },
  ];
  if (all.at(-1)?.answered !== null) {
    found.push({ label: figures.rate, values: ratesOf(all, (each) => each.answered), show: rate });
    found.push({ label: figures.errors, values: ratesOf(all, (each) => each.failed), show: rate });
  }
  return found;
}

function Figure({ label, values, show }: Course) {
  const last = values.at(-1);
  return (
    <div class="card figure">
      <span class="label">{label}</span>
      <span class="value">{last === undefined ? "–" : show(last)}</span>
      <Sparkline values={values} label={admin.figures.trend(label, show(Math.min(...values, last ?? 0)), show(Math.max(...values, last ?? 0)))} />
    </div>
  );
}

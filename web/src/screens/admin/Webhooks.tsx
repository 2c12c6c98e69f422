/** Webhooks with their progress, and the background work of this process. */
import type { WebhookOutput } from "../../api/adminTypes";
import { Loading, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { ProblemBox } from "../../kit/ProblemBox";
import { Time } from "../../kit/Time";
import { source } from "../../state/context";
import { admin } from "../../text/admin";
import { useOperations } from "./Queries";

const words = admin.webhooks;
const TONES = { ready: "good", starting: "", retrying: "warn", failed: "bad" } as const;
const WORK = new Set(["optimize", "buildIndices", "cleanup", "recover", "verify", "embed"]);

export function Webhooks() {
  const loaded = useLoad("webhooks", (signal) => source.admin.webhooks(signal));
  return (
    <div class="stack">
      <section class="card" aria-labelledby="webhooks">
        <header>
          <h2 id="webhooks">{words.title}</h2>
        </header>
        <Loading of={loaded}>{({ webhooks }) => (webhooks.length === 0 ? <p class="empty">{words.none}</p> : <List webhooks={webhooks} />)}</Loading>
      </section>
      <Jobs />
    </div>
  );
}

function List({ webhooks }: { webhooks: readonly WebhookOutput[] }) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-labelledby="webhooks">
      <table class="plain-table">
        <thead>
          <tr>
            {[words.name, words.graph, words.to, words.state, words.delivered, words.dropped, words.last].map((title) => (
              <th scope="col" key={title}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {webhooks.map((each) => (
            <tr key={`${each.graph_id} ${each.name}`}>
              <th scope="row">{each.name}</th>
              <td>{each.graph_id}</td>
              <td>{each.origin}</td>
              <td>
                <span class={`badge ${TONES[each.state]}`}>{each.state}</span>{" "}
                {each.failure === undefined ? null : (
                  <span class="small">
                    <Plain text={each.failure.error} /> · {words.tries(each.failure.tries)}
                  </span>
                )}
              </td>
              <td class="number">{each.delivered.toLocaleString()}</td>
              <td class="number">{each.dropped.toLocaleString()}</td>
              <td>{each.last_delivered_at === undefined ? "–" : <Time at={each.last_delivered_at} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Jobs() {
  const { operations, problem } = useOperations();
  const work = (operations ?? []).filter((each) => WORK.has(each.kind));
  return (
    <section class="card" aria-labelledby="jobs">
      <header>
        <h2 id="jobs">{words.jobs}</h2>
      </header>
      {problem === null ? null : <ProblemBox problem={problem} />}
      {work.length === 0 ? (
        <p class="empty">{words.jobsNone}</p>
      ) : (
        <ul class="list">
          {work.map((each) => (
            <li key={each.id}>
              <div class="item">
                <strong>{each.kind}</strong>
                <span class="badge">{admin.queries.states[each.state]}</span>
                <span class="grow">{each.actor_id === null ? null : <Plain text={each.actor_id} />}</span>
                <Time at={each.finished_at ?? each.started_at} />
              </div>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

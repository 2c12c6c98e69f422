/** The versions of an entity, newest first; each can be seen as it was. */
import type { HistoryOutput, RowVersionOutput } from "../../api/types";
import { Loading, type Loaded } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { Time } from "../../kit/Time";
import { Value } from "../../kit/Value";
import { href, link } from "../../state/location";
import { text } from "../../text/en";

export function History({ loaded }: { loaded: Loaded<HistoryOutput> }) {
  return (
    <section class="card">
      <header>
        <h2>{text.entity.history}</h2>
      </header>
      <Loading of={loaded}>
        {(history) => (
          <ul class="list">
            {history.changes.map((change) => (
              <li key={change.graph_commit_id}>
                <div class="item">
                  <span class={`badge ${{ insert: "good", update: "warn", delete: "bad", found: "" }[change.op]}`}>{text.entity.ops[change.op]}</span>
                  <span class="grow">
                    <Changes change={change} />
                  </span>
                  {change.message === null ? null : (
                    <span class="cut muted">
                      <Plain text={change.message} />
                    </span>
                  )}
                  <span class="muted">{change.actor_id === null ? "" : <Plain text={change.actor_id} />}</span>
                  <Time at={change.created_at} />
                  <a href={href({ params: { ...link.value.params, at: change.graph_commit_id } })}>
                    <code>{change.graph_commit_id.slice(-6)}</code>
                  </a>
                </div>
              </li>
            ))}
          </ul>
        )}
      </Loading>
    </section>
  );
}

/** The changed values of an update: before and after. */
function Changes({ change }: { change: RowVersionOutput }) {
  if (change.op !== "update") return null;
  return (
    <>
      {change.properties.map((name) => (
        <span class="changed" key={name}>
          <strong>{name}</strong> <del>{<Value value={change.before?.[name]} />}</del> → <ins>{<Value value={change.after?.[name]} />}</ins>
        </span>
      ))}
    </>
  );
}

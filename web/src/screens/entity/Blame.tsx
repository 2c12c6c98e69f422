/** Who set a value: the commit, the value before it, and the ways back. */
import { useState } from "preact/hooks";

import type { EntityOutput, PropertyBlameOutput, RowVersionOutput, TypeOutput } from "../../api/types";
import { BranchSelect } from "../../commits/BranchSelect";
import { RevertDialog } from "../../commits/RevertDialog";
import { announce } from "../../kit/announce";
import { Dialog } from "../../kit/Dialog";
import { Field, FormDialog } from "../../kit/FormDialog";
import { Plain } from "../../kit/Plain";
import { Time } from "../../kit/Time";
import { Value } from "../../kit/Value";
import type { QueryRequest } from "../../source/source";
import { config, place, source, written } from "../../state/context";
import { isPinned, MAIN } from "../../state/link";
import { href, link } from "../../state/location";
import { text } from "../../text/en";
import { versionText } from "../../text/versions";
import { putBackRequest, valueBefore } from "./versions";

interface Props {
  blame: PropertyBlameOutput;
  entity: EntityOutput;
  type: TypeOutput | undefined;
  changes: readonly RowVersionOutput[];
  onClose(): void;
}

export function BlameDialog({ blame, entity, type, changes, onClose }: Props) {
  const [next, setNext] = useState<"revert" | "put" | null>(null);
  const before = valueBefore(changes, blame.graph_commit_id, blame.property);
  const request = before === undefined ? null : putBackRequest(type, entity.data, blame.property, before.value);
  if (next === "revert") return <RevertDialog commit={{ graph_commit_id: blame.graph_commit_id, message: blame.message, kind: "commit" }} onClose={onClose} />;
  if (next === "put" && before !== undefined && request !== null) return <PutBackDialog property={blame.property} id={entity.id} value={before.value} request={request} onClose={onClose} />;
  const words = text.entity.blame;
  return (
    <Dialog title={text.entity.blameTitle(blame.property)} onClose={onClose} wide>
      {blame.known ? null : <p class="muted">{text.entity.unknownCommit}</p>}
      <dl class="dl">
        <dt>{words.value}</dt>
        <dd>
          <Value value={blame.value} />
        </dd>
        <dt>{versionText.before}</dt>
        <dd>{before === undefined ? <span class="muted">{versionText.created}</span> : <Value value={before.value} />}</dd>
        <dt>{words.actor}</dt>
        <dd>
          <Plain text={blame.actor_id ?? text.entity.unknownActor} />
        </dd>
        <dt>{words.time}</dt>
        <dd>
          <Time at={blame.created_at} />
        </dd>
        <dt>{words.message}</dt>
        <dd>{blame.message === null ? "" : <Plain text={blame.message} />}</dd>
        <dt>{words.commit}</dt>
        <dd>
          <a href={href({ screen: "history", path: [], params: { commit: blame.graph_commit_id } })} title={versionText.showCommit} onClick={onClose}>
            <code>{blame.graph_commit_id}</code>
          </a>
        </dd>
      </dl>
      {before !== undefined && request === null ? <p class="muted">{versionText.noPutBack}</p> : null}
      <div class="actions">
        <button type="button" class="button" onClick={onClose}>
          {text.close}
        </button>
        <button type="button" class="button" disabled={config.read_only || !blame.known} onClick={() => setNext("revert")}>
          {versionText.revert}
        </button>
        {request === null ? null : (
          <button type="button" class="button primary" disabled={config.read_only} onClick={() => setNext("put")}>
            {versionText.putBack}
          </button>
        )}
      </div>
    </Dialog>
  );
}

function PutBackDialog({ property, id, value, request, onClose }: { property: string; id: string; value: unknown; request: QueryRequest; onClose(): void }) {
  const { graph, ref } = link.value;
  const words = versionText.put;
  const [branch, setBranch] = useState(isPinned(ref) ? MAIN : ref);
  const [message, setMessage] = useState(words.message(property, id));
  return (
    <FormDialog
      title={words.title(property)}
      submit={words.run}
      ready
      onClose={onClose}
      run={async () => {
        const here = place.value;
        if (here === null) return;
        const done = await source.mutate({ ...here, branch }, request, message.trim());
        announce(done.commit === null ? words.unchanged : words.done);
        written.value += 1;
      }}
    >
      <p class="muted">
        <Plain text={words.explain(property, branch)} />
      </p>
      <div class="old-value">
        <Value value={value} full />
      </div>
      <BranchSelect graph={graph} value={branch} onValue={setBranch} />
      <Field label={text.query.message} value={message} onValue={setMessage} />
    </FormDialog>
  );
}

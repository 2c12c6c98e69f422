/** Comments in threads: on the proposal, on a row, or on a property. */
import { useState } from "preact/hooks";

import type { CommentListOutput, CommentOutput, CommentPlaceOutput, ProposalOutput } from "../../api/proposalTypes";
import { Loading, type Loaded } from "../../kit/load";
import { Markdown } from "../../kit/Markdown";
import { Plain } from "../../kit/Plain";
import { ProblemBox } from "../../kit/ProblemBox";
import { Time } from "../../kit/Time";
import { addComment, editComment } from "../../source/proposals";
import { me } from "../../state/context";
import { href } from "../../state/location";
import { text as common } from "../../text/en";
import { proposalText as text } from "../../text/proposals";
import { lacking, useAttempt } from "./state";
import { sameRow, threadsOf, type Thread } from "./threads";

interface Shared {
  graph: string;
  proposal: ProposalOutput;
  reload(): void;
}

interface Props extends Shared {
  comments: Loaded<CommentListOutput>;
}

export function Comments({ comments, ...shared }: Props) {
  return (
    <Loading of={comments}>
      {(list) => (
        <div class="comments stack">
          {list.hidden_comments > 0 ? <p class="muted">{text.comment.hidden(list.hidden_comments)}</p> : null}
          {list.comments.length === 0 ? <p class="muted">{text.comment.none}</p> : null}
          {threadsOf(list.comments).map((thread) => (
            <ThreadView key={thread.head.id} {...shared} thread={thread} showPlace />
          ))}
          <CommentForm {...shared} label={text.comment.onProposal} />
        </div>
      )}
    </Loading>
  );
}

/** The threads about one row, and a way to begin one. */
export function RowComments({ comments, place, properties, ...shared }: Shared & { comments: CommentListOutput | undefined; place: CommentPlaceOutput; properties: readonly string[] }) {
  const [open, setOpen] = useState(false);
  const threads = threadsOf(comments?.comments ?? []).filter((thread) => thread.head.on !== null && sameRow(thread.head.on, place));
  return (
    <div class="row-comments stack tight">
      {threads.map((thread) => (
        <ThreadView key={thread.head.id} {...shared} thread={thread} />
      ))}
      {open ? (
        <CommentForm {...shared} label={text.comment.onRow(typeOf(place), place.row_id)} place={place} properties={properties} onDone={() => setOpen(false)} />
      ) : (
        <button type="button" class="button plain small" onClick={() => setOpen(true)}>
          {text.comment.start}
        </button>
      )}
    </div>
  );
}

const typeOf = (place: CommentPlaceOutput): string => place.table_key.slice(place.table_key.indexOf(":") + 1);

function ThreadView({ graph, proposal, reload, thread, showPlace = false }: Shared & { thread: Thread; showPlace?: boolean }) {
  const { head, replies } = thread;
  const [replying, setReplying] = useState(false);
  const attempt = useAttempt(reload);
  const words = text.comment;
  return (
    <article class="thread card" data-resolved={head.resolved ? "" : undefined}>
      {showPlace && head.on !== null ? (
        <a class="thread-place small" href={href({ params: { tab: "changes", row: `${head.on.table_key}:${head.on.row_id}` } })}>
          <Plain text={`${words.onRow(typeOf(head.on), head.on.row_id)}${head.on.property ? ` · ${head.on.property}` : ""}`} />
        </a>
      ) : head.on?.property ? (
        <span class="thread-place small muted">{head.on.property}</span>
      ) : null}
      {[head, ...replies].map((comment) => (
        <CommentView key={comment.id} graph={graph} proposal={proposal} reload={reload} comment={comment} />
      ))}
      <div class="row wrap">
        {head.resolved ? <span class="badge good">{words.resolved}</span> : null}
        <button type="button" class="button plain small" onClick={() => setReplying(!replying)} aria-expanded={replying}>
          {words.reply}
        </button>
        <button type="button" class="button plain small" disabled={attempt.running} onClick={() => void attempt.run(() => editComment(graph, proposal.id, head.id, { resolved: !head.resolved }))}>
          {head.resolved ? words.unresolve : words.resolve}
        </button>
      </div>
      {attempt.problem === null ? null : <ProblemBox problem={attempt.problem} />}
      {replying ? <CommentForm graph={graph} proposal={proposal} reload={reload} label={words.reply} replyTo={head.id} onDone={() => setReplying(false)} /> : null}
    </article>
  );
}

function CommentView({ graph, proposal, reload, comment }: Shared & { comment: CommentOutput }) {
  const [editing, setEditing] = useState(false);
  const own = comment.actor_id !== null && comment.actor_id === me.value?.actor_id;
  return (
    <div class="comment">
      <div class="row wrap">
        <strong>
          <Plain text={comment.actor_id ?? text.unknownActor} />
        </strong>
        <Time at={comment.created_at} />
        {comment.edited_at === null ? null : <span class="muted small">{text.comment.edited}</span>}
        {own && !editing ? (
          <button type="button" class="button plain small" onClick={() => setEditing(true)}>
            {text.comment.edit}
          </button>
        ) : null}
      </div>
      {editing ? <CommentForm graph={graph} proposal={proposal} reload={reload} label={text.comment.edit} edited={comment} onDone={() => setEditing(false)} /> : <Markdown text={comment.text} />}
    </div>
  );
}

interface FormProps extends Shared {
  label: string;
  place?: CommentPlaceOutput;
  properties?: readonly string[];
  replyTo?: string;
  edited?: CommentOutput;
  onDone?(): void;
}

function CommentForm({ graph, proposal, reload, label, place, properties = [], replyTo, edited, onDone }: FormProps) {
  const words = text.comment;
  const [written, setWritten] = useState(edited?.text ?? "");
  const [property, setProperty] = useState("");
  const attempt = useAttempt(reload);
  const reason = lacking(proposal.target, "proposal_comment").length > 0 ? words.mayNot(proposal.target) : null;
  if (reason !== null) return <p class="muted small">{reason}</p>;
  const send = () =>
    edited === undefined
      ? addComment(graph, proposal.id, {
          text: written,
          ...(place === undefined ? {} : { on: { table_key: place.table_key, row_id: place.row_id, ...(property === "" ? {} : { property }) } }),
          ...(replyTo === undefined ? {} : { reply_to: replyTo }),
        })
      : editComment(graph, proposal.id, edited.id, { text: written });
  return (
    <form
      class="stack tight comment-form"
      onSubmit={(event) => {
        event.preventDefault();
        void attempt.run(send).then((done) => {
          if (!done) return;
          setWritten("");
          onDone?.();
        });
      }}
    >
      {properties.length === 0 ? null : (
        <div class="row">
          <span class="muted small" aria-hidden="true">
            {words.property}
          </span>
          <select class="select" aria-label={words.property} value={property} onChange={(event) => setProperty(event.currentTarget.value)}>
            <option value="">{words.wholeRow}</option>
            {properties.map((each) => (
              <option value={each} key={each}>
                {each}
              </option>
            ))}
          </select>
        </div>
      )}
      <textarea class="input" rows={3} aria-label={label} placeholder={label} value={written} onInput={(event) => setWritten(event.currentTarget.value)} />
      {attempt.problem === null ? null : <ProblemBox problem={attempt.problem} />}
      <div class="row">
        <button type="submit" class="button small primary" disabled={attempt.running || written.trim() === ""}>
          {edited === undefined ? words.add : words.save}
        </button>
        {onDone === undefined ? null : (
          <button type="button" class="button small" onClick={onDone}>
            {common.cancel}
          </button>
        )}
      </div>
    </form>
  );
}

/** Threads of comments. The module is pure. */
import type { CommentOutput, CommentPlaceOutput } from "../../api/proposalTypes";

export interface Thread {
  readonly head: CommentOutput;
  readonly replies: readonly CommentOutput[];
}

/** Returns the threads in the order of their first comments; a reply whose head is hidden begins a thread. */
export function threadsOf(comments: readonly CommentOutput[]): Thread[] {
  const known = new Map(comments.map((comment) => [comment.id, comment]));
  const threads = new Map<string, { head: CommentOutput; replies: CommentOutput[] }>();
  for (const comment of [...comments].sort((a, b) => a.created_at - b.created_at)) {
    const thread = threads.get(headOf(comment, known).id);
    if (thread === undefined) threads.set(comment.id, { head: comment, replies: [] });
    else thread.replies.push(comment);
  }
  return [...threads.values()];
}

function headOf(comment: CommentOutput, known: ReadonlyMap<string, CommentOutput>): CommentOutput {
  let head = comment;
  for (let steps = 0; steps < known.size && head.reply_to !== null; steps += 1) {
    const next = known.get(head.reply_to);
    if (next === undefined) break;
    head = next;
  }
  return head;
}

export const sameRow = (a: CommentPlaceOutput, b: CommentPlaceOutput): boolean => a.table_key === b.table_key && a.row_id === b.row_id;

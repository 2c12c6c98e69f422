/** Differences of two texts, word by word (Myers). Pure. */

export interface Piece {
  readonly op: "same" | "removed" | "added";
  readonly text: string;
}

const WORD = /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu;
/** Above so many differing words, the words between common ends are one removal and one addition. */
const EDITS_MAX = 400;
const WORDS_MAX = 20_000;

/** Returns the words of two texts in order: common ones, removed ones and added ones. */
export function compareWords(before: string, after: string): Piece[] {
  const [a, b] = [wordsOf(before), wordsOf(after)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middle = compareMiddle(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return joined([piece("same", a.slice(0, start)), ...middle, piece("same", a.slice(a.length - end))]);
}

/** Returns the words of a text; a very long text is cut into lines instead. */
function wordsOf(text: string): string[] {
  const words = text.match(WORD) ?? [];
  return words.length <= WORDS_MAX ? words : (text.match(/[^\n]*\n|[^\n]+$/g) ?? []);
}

const piece = (op: Piece["op"], words: readonly string[]): Piece => ({ op, text: words.join("") });

function compareMiddle(a: readonly string[], b: readonly string[]): Piece[] {
  const whole = [piece("removed", a), piece("added", b)];
  if (a.length === 0 || b.length === 0) return whole;
  // frontier[k] is the largest x on diagonal k; the frontier of every number of edits is kept for the way back.
  const limit = Math.min(EDITS_MAX, a.length + b.length);
  const offset = limit + 1;
  const frontier = new Int32Array(2 * offset + 1);
  const steps: Int32Array[] = [];
  for (let edits = 0; edits <= limit; edits += 1) {
    steps.push(frontier.slice());
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && at(frontier, offset + k - 1) < at(frontier, offset + k + 1));
      let x = down ? at(frontier, offset + k + 1) : at(frontier, offset + k - 1) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      frontier[offset + k] = x;
      if (x >= a.length && x - k >= b.length) return wayBack(a, b, steps, offset);
    }
  }
  return whole;
}

const at = (values: Int32Array, index: number): number => values[index] as number;

function wayBack(a: readonly string[], b: readonly string[], steps: readonly Int32Array[], offset: number): Piece[] {
  const pieces: Piece[] = [];
  let [x, y] = [a.length, b.length];
  for (let edits = steps.length - 1; edits >= 0; edits -= 1) {
    const frontier = steps[edits] as Int32Array;
    const k = x - y;
    const down = k === -edits || (k !== edits && at(frontier, offset + k - 1) < at(frontier, offset + k + 1));
    const fromK = down ? k + 1 : k - 1;
    const fromX = edits === 0 ? 0 : at(frontier, offset + fromK);
    const fromY = edits === 0 ? 0 : fromX - fromK;
    while (x > fromX && y > fromY) {
      x -= 1;
      y -= 1;
      pieces.push({ op: "same", text: a[x] as string });
    }
    if (edits === 0) break;
    if (down) pieces.push({ op: "added", text: b[(y -= 1)] as string });
    else pieces.push({ op: "removed", text: a[(x -= 1)] as string });
  }
  return pieces.reverse();
}

/** Joins neighbours of the same kind. Within a changed run, removed words precede added ones. */
function joined(pieces: readonly Piece[]): Piece[] {
  const result: Piece[] = [];
  let [removed, added] = ["", ""];
  const flush = () => {
    if (removed !== "") result.push({ op: "removed", text: removed });
    if (added !== "") result.push({ op: "added", text: added });
    [removed, added] = ["", ""];
  };
  for (const { op, text } of pieces) {
    if (text === "") continue;
    if (op === "removed") removed += text;
    else if (op === "added") added += text;
    else {
      // A space between two changed words belongs to the change: single words are easier to read as one phrase.
      if (removed !== "" && added !== "" && /^ $/.test(text)) {
        removed += text;
        added += text;
        continue;
      }
      const rest = trailing(removed, added);
      if (rest !== "") [removed, added] = [removed.slice(0, -rest.length), added.slice(0, -rest.length)];
      flush();
      const last = result.at(-1);
      if (last?.op === "same") result[result.length - 1] = { op: "same", text: last.text + rest + text };
      else result.push({ op: "same", text: rest + text });
    }
  }
  const rest = trailing(removed, added);
  if (rest !== "") [removed, added] = [removed.slice(0, -rest.length), added.slice(0, -rest.length)];
  flush();
  if (rest !== "") result.push({ op: "same", text: rest });
  return result;
}

/** Returns the space at the end of both texts. */
function trailing(removed: string, added: string): string {
  const [a, b] = [/\s*$/.exec(removed)?.[0] ?? "", /\s*$/.exec(added)?.[0] ?? ""];
  return a === b ? a : "";
}

const CONTEXT = 60;

/** Shortens common pieces to the words around a change. */
export function shortened(pieces: readonly Piece[]): Piece[] {
  return pieces.map((each, index) => {
    if (each.op !== "same" || each.text.length <= 2 * CONTEXT + 20) return each;
    const first = index === 0 ? "" : cutAtWord(each.text.slice(0, CONTEXT), false);
    const last = index === pieces.length - 1 ? "" : cutAtWord(each.text.slice(-CONTEXT), true);
    return { op: "same", text: `${first} … ${last}` };
  });
}

function cutAtWord(text: string, fromStart: boolean): string {
  const space = fromStart ? text.indexOf(" ") : text.lastIndexOf(" ");
  if (space < 0) return text;
  return fromStart ? text.slice(space + 1) : text.slice(0, space);
}

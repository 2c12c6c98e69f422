/** A changed property: words of texts marked, the distance of vectors, otherwise old and new. */
import { useState } from "preact/hooks";

import { Plain } from "../kit/Plain";
import { Value } from "../kit/Value";
import { text } from "../text/review";
import { cosineDistance, isVector, type ChangedProperty } from "./change";
import { compareWords, shortened, type Piece } from "./words";

const WORDS_FROM = 24;

export function ChangedValue({ before, after }: Pick<ChangedProperty, "before" | "after">) {
  if (isVector(before) && isVector(after)) return <VectorChange before={before} after={after} />;
  if (typeof before === "string" && typeof after === "string" && Math.max(before.length, after.length) >= WORDS_FROM && /\s/.test(before + after)) {
    return <TextChange before={before} after={after} />;
  }
  return (
    <span class="was-is">
      <del>
        <Value value={before} />
      </del>
      <span class="muted" aria-hidden="true">
        {text.diff.arrow}
      </span>
      <ins>
        <Value value={after} />
      </ins>
      <Difference before={before} after={after} />
    </span>
  );
}

/** The difference of two numbers. */
function Difference({ before, after }: { before: unknown; after: unknown }) {
  if (typeof before !== "number" || typeof after !== "number" || !Number.isFinite(after - before)) return null;
  const change = after - before;
  return <span class="muted small number">{`${change > 0 ? "+" : "−"}${Math.abs(change).toLocaleString(undefined, { maximumFractionDigits: 6 })}`}</span>;
}

function VectorChange({ before, after }: { before: readonly number[]; after: readonly number[] }) {
  const distance = cosineDistance(before, after);
  return (
    <span class="was-is">
      <Value value={before} />
      <span class="muted" aria-hidden="true">
        {text.diff.arrow}
      </span>
      <Value value={after} />
      <span class="badge">{distance === null ? text.diff.dimensions(before.length, after.length) : text.diff.distance(distance.toPrecision(3))}</span>
    </span>
  );
}

function TextChange({ before, after }: { before: string; after: string }) {
  const [whole, setWhole] = useState(false);
  const pieces = compareWords(before, after);
  const short = shortened(pieces);
  const cut = short.some((each, index) => each !== pieces[index]);
  return (
    <span class="words">
      {(whole ? pieces : short).map((each, index) => (
        <Words piece={each} key={index} />
      ))}
      {cut ? (
        <button type="button" class="more-text" onClick={() => setWhole(!whole)}>
          {whole ? text.diff.shortText : text.diff.wholeText}
        </button>
      ) : null}
    </span>
  );
}

function Words({ piece }: { piece: Piece }) {
  const content = <Plain text={piece.text} />;
  if (piece.op === "removed") return <del>{content}</del>;
  if (piece.op === "added") return <ins>{content}</ins>;
  return content;
}

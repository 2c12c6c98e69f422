/**
 * Text of a graph, shown as it is: control characters, direction marks and invisible characters become visible marks,
 * so that no value can reorder or hide the text around it.
 */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** Splits a text into visible parts and the names of hidden characters. */
export function visibleParts(value: string): readonly (string | { code: string })[] {
  const parts: (string | { code: string })[] = [];
  let from = 0;
  for (const match of value.matchAll(HIDDEN)) {
    if (match.index > from) parts.push(value.slice(from, match.index));
    parts.push({ code: `U+${(match[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}` });
    from = match.index + match[0].length;
  }
  if (from < value.length) parts.push(value.slice(from));
  return parts;
}

/** Returns a text with marks in place of hidden characters, where only text can stand, such as in an option. */
export function plainText(value: string): string {
  return visibleParts(value)
    .map((part) => (typeof part === "string" ? part : `[${part.code}]`))
    .join("");
}

export function Plain({ text }: { text: string }) {
  const parts = visibleParts(text);
  if (parts.length === 1 && typeof parts[0] === "string") return <bdi>{parts[0]}</bdi>;
  return (
    <bdi>
      {parts.map((part, index) =>
        typeof part === "string" ? (
          part
        ) : (
          <span class="mark-control" key={index}>
            {part.code}
          </span>
        ),
      )}
    </bdi>
  );
}

/** Colours of query and schema texts: a tokeniser over word lists that Python writes. The server knows the grammar. */
import { HighlightStyle, StreamLanguage, syntaxHighlighting, type StreamParser } from "@codemirror/language";
import { tags } from "@lezer/highlight";

import words from "./words.json";

const keywords = new Set(words.keywords);
const functions = new Set(words.functions);
const scalars = new Set(words.scalars);

interface State {
  /** Inside a block comment. */
  comment: boolean;
}

const parser: StreamParser<State> = {
  name: "omnigraph",
  startState: () => ({ comment: false }),
  token(stream, state) {
    if (state.comment || stream.match("/*")) {
      state.comment = !stream.match(/.*?\*\//);
      if (state.comment) stream.skipToEnd();
      return "comment";
    }
    if (stream.eatSpace()) return null;
    if (stream.match(/\/\/.*/)) return "comment";
    if (stream.match(/"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/\$\w+/)) return "variableName";
    if (stream.match(/@\w+/)) return "annotation";
    if (stream.match(/-?\d[\d_]*(\.\d+)?([eE][+-]?\d+)?/)) return "number";
    const word = stream.match(/[A-Za-z_]\w*/);
    if (word !== null && word !== true && word !== false) return wordStyle(word[0], stream.peek() === "(");
    stream.next();
    return null;
  },
  languageData: { commentTokens: { line: "//", block: { open: "/*", close: "*/" } }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
};

function wordStyle(word: string, called: boolean): string | null {
  if (scalars.has(word)) return "typeName";
  if (called && functions.has(word)) return "function";
  if (keywords.has(word)) return "keyword";
  if (/^(true|false|null)$/.test(word)) return "atom";
  return /^[A-Z]/.test(word) ? "typeName" : null;
}

const style = HighlightStyle.define([
  { tag: tags.keyword, class: "tok-keyword" },
  { tag: [tags.function(tags.variableName)], class: "tok-function" },
  { tag: tags.typeName, class: "tok-type" },
  { tag: tags.string, class: "tok-string" },
  { tag: [tags.number, tags.atom], class: "tok-number" },
  { tag: tags.variableName, class: "tok-variable" },
  { tag: tags.comment, class: "tok-comment" },
  { tag: tags.annotation, class: "tok-keyword" },
]);

export const language = [
  StreamLanguage.define({ ...parser, tokenTable: { function: tags.function(tags.variableName), annotation: tags.annotation } }),
  syntaxHighlighting(style),
];

/**
 * A subset of Markdown as elements: paragraphs, emphasis, code, lists and links. Everything else stays text.
 *
 * The parser makes data and the component makes elements of it; no markup of the text reaches the page.
 */
import type { ComponentChildren } from "preact";

import { Plain } from "./Plain";
import { linkOf } from "./Value";

export type Inline = string | { readonly kind: "strong" | "em"; readonly parts: readonly Inline[] } | { readonly kind: "code"; readonly text: string } | { readonly kind: "link"; readonly text: string; readonly address: string };

export type Block = { readonly kind: "text"; readonly parts: readonly Inline[] } | { readonly kind: "code"; readonly text: string } | { readonly kind: "list"; readonly ordered: boolean; readonly items: readonly (readonly Inline[])[] };

const ITEM = /^\s{0,3}(?:[-*]|(\d{1,9})[.)])\s+(.*)$/;
const DEPTH_MAX = 3;
/** Code, links, strong, emphasis and addresses, each on one line and of a bounded length, so that no text takes long. */
const PIECE = /`([^`\n]{1,400})`|\[([^\]\n]{1,200})\]\(([^()\s]{1,1000})\)|\*\*([^\n]{1,300}?)\*\*(?!\*)|(?<![\w*])[*_](?!\s)([^*_\n]{1,300})(?<!\s)[*_](?![\w*])|(https?:\/\/[^\s<>()]{1,1000}[^\s<>().,;:!?])/g;

export function parseInline(text: string, depth = 0): Inline[] {
  if (depth > DEPTH_MAX) return [text];
  const parts: Inline[] = [];
  let from = 0;
  for (const match of text.matchAll(PIECE)) {
    const piece = inlineOf(match, depth);
    if (piece === null) continue;
    if (match.index > from) parts.push(text.slice(from, match.index));
    parts.push(piece);
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push(text.slice(from));
  return parts;
}

function inlineOf([, code, label, address, strong, em, bare]: RegExpMatchArray, depth: number): Inline | null {
  if (code !== undefined) return { kind: "code", text: code };
  if (strong !== undefined) return { kind: "strong", parts: parseInline(strong, depth + 1) };
  if (em !== undefined) return { kind: "em", parts: parseInline(em, depth + 1) };
  const target = linkOf(address ?? bare ?? "");
  return target === null ? null : { kind: "link", text: label ?? bare ?? target, address: target };
}

export function parseMarkdown(text: string): Block[] {
  const blocks: Block[] = [];
  let lines: string[] = [];
  let list: { ordered: boolean; items: Inline[][] } | null = null;
  const end = () => {
    if (lines.length > 0) blocks.push({ kind: "text", parts: parseInline(lines.join("\n")) });
    if (list !== null) blocks.push({ kind: "list", ...list });
    [lines, list] = [[], null];
  };
  const all = text.split(/\r?\n/);
  for (let at = 0; at < all.length; at += 1) {
    const line = all[at] as string;
    const item = ITEM.exec(line);
    if (/^\s{0,3}```/.test(line)) {
      end();
      const last = all.findIndex((each, index) => index > at && /^\s{0,3}```\s*$/.test(each));
      const until = last < 0 ? all.length : last;
      blocks.push({ kind: "code", text: all.slice(at + 1, until).join("\n") });
      at = until;
    } else if (item !== null) {
      const ordered = item[1] !== undefined;
      if (list === null || (list as { ordered: boolean }).ordered !== ordered) {
        end();
        list = { ordered, items: [] };
      }
      (list as { items: Inline[][] }).items.push(parseInline(item[2] ?? ""));
    } else if (line.trim() === "") end();
    else {
      if (list !== null) end();
      lines.push(line);
    }
  }
  end();
  return blocks;
}

export function Markdown({ text }: { text: string }) {
  return (
    <div class="markdown">
      {parseMarkdown(text).map((block, index) => {
        if (block.kind === "code") {
          return (
            <pre key={index} tabIndex={0}>
              <Plain text={block.text} />
            </pre>
          );
        }
        if (block.kind === "text") return <p key={index}>{inlines(block.parts)}</p>;
        const items = block.items.map((item, at) => <li key={at}>{inlines(item)}</li>);
        return block.ordered ? <ol key={index}>{items}</ol> : <ul key={index}>{items}</ul>;
      })}
    </div>
  );
}

function inlines(parts: readonly Inline[]): ComponentChildren {
  return parts.map((part, index) => {
    if (typeof part === "string") return <Plain text={part} key={index} />;
    if ("parts" in part) return part.kind === "strong" ? <strong key={index}>{inlines(part.parts)}</strong> : <em key={index}>{inlines(part.parts)}</em>;
    if (part.kind === "code") {
      return (
        <code key={index}>
          <Plain text={part.text} />
        </code>
      );
    }
    return (
      <a key={index} href={part.address} target="_blank" rel="noopener noreferrer">
        <Plain text={part.text} />
      </a>
    );
  });
}

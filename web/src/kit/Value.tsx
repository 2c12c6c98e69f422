/** One value of a graph: as a cell (cut, one line) or in full. */
import type { ComponentChildren } from "preact";

import { text } from "../text/en";
import { Plain } from "./Plain";

const CUT = 160;
const POINTS_MAX = 64;

/** Returns the address of a value that may become a link: http, https and mailto only. */
export function linkOf(value: string): string | null {
  if (value.length > 2000 || /\s/.test(value)) return null;
  return /^(https?:\/\/[^/]|mailto:[^@\s]+@)/i.test(value) ? value : null;
}

/** Returns a value as one line of text, for copies, titles and widths. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return text.value.null;
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return String(value);
  return JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? each.toString() : each));
}

/** True if the value is a node: an object with an id. */
export function isNode(value: unknown): value is { id: string } & Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && typeof (value as { id?: unknown }).id === "string";
}

/** Returns the words that name a node: a name or title, else its id. */
export function nodeLabel(data: Readonly<Record<string, unknown>>, id: string): string {
  for (const name of ["name", "title", "label"]) {
    const value = data[name];
    if (typeof value === "string" && value !== "") return value;
  }
  return id;
}

interface Props {
  value: unknown;
  /** Shows the whole value. */
  full?: boolean;
}

export function Value({ value, full = false }: Props): ComponentChildren {
  if (value === null || value === undefined) return <span class="null">{text.value.null}</span>;
  if (value === "") return <span class="null">{text.value.empty}</span>;
  if (typeof value === "string") return <TextValue value={value} full={full} />;
  if (typeof value === "number" || typeof value === "bigint") return <span class="number">{String(value)}</span>;
  if (typeof value === "boolean") return String(value);
  if (value instanceof Uint8Array) return <span class="muted">{text.value.bytes(value.length)}</span>;
  if (Array.isArray(value)) return <ListValue value={value} full={full} />;
  return <StructValue value={value as Record<string, unknown>} full={full} />;
}

function TextValue({ value, full }: { value: string; full: boolean }) {
  const shown = full || value.length <= CUT ? value : value.slice(0, CUT);
  const address = linkOf(value);
  const content = (
    <>
      <Plain text={full ? shown : shown.replace(/\s+/g, " ")} />
      {shown.length < value.length ? "…" : ""}
    </>
  );
  return address === null ? (
    content
  ) : (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {content}
    </a>
  );
}

function ListValue({ value, full }: { value: readonly unknown[]; full: boolean }) {
  if (value.length > 3 && value.every((each) => typeof each === "number")) {
    return (
      <span class="row">
        <Spark values={value as readonly number[]} />
        <span class="muted">{full ? text.value.vector(value.length) : value.length}</span>
      </span>
    );
  }
  if (full) {
    return (
      <ol class="values">
        {value.map((each, index) => (
          <li key={index}>
            <Value value={each} />
          </li>
        ))}
      </ol>
    );
  }
  const line = valueText(value);
  return <Plain text={line.length > CUT ? `${line.slice(0, CUT)}…` : line} />;
}

function StructValue({ value, full }: { value: Readonly<Record<string, unknown>>; full: boolean }) {
  if (!full) {
    const line = valueText(value);
    return <Plain text={line.length > CUT ? `${line.slice(0, CUT)}…` : line} />;
  }
  return (
    <dl class="dl">
      {Object.entries(value).map(([name, each]) => (
        <>
          <dt key={`${name} name`}>{name}</dt>
          <dd key={name}>
            <Value value={each} full />
          </dd>
        </>
      ))}
    </dl>
  );
}

/** A vector as a line; its numbers are in the title of the whole value. */
function Spark({ values }: { values: readonly number[] }) {
  const step = Math.max(1, Math.floor(values.length / POINTS_MAX));
  const shown = values.filter((each, index) => index % step === 0 && Number.isFinite(each));
  const low = Math.min(...shown);
  const size = Math.max(...shown) - low || 1;
  const points = shown.map((each, index) => `${((index / Math.max(1, shown.length - 1)) * 62 + 1).toFixed(1)},${(15 - ((each - low) / size) * 14).toFixed(1)}`);
  return (
    <svg class="spark" viewBox="0 0 64 16" aria-hidden="true">
      <polyline points={points.join(" ")} fill="none" stroke="currentColor" stroke-width="1" />
    </svg>
  );
}

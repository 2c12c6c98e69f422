/** Versions of an entity, and the change that puts an old value back. Pure. */
import type { RowVersionOutput, TypeOutput } from "../../api/types";
import type { QueryRequest } from "../../source/source";

/** Returns the position of the shown version, oldest first; the newest one without a commit or with an unknown one. */
export function versionAt(changes: readonly RowVersionOutput[], commit: string | undefined): number {
  const at = changes.findIndex((change) => change.graph_commit_id === commit);
  return changes.length - 1 - Math.max(at, 0);
}

/** Returns the version at a position, oldest first. */
export const versionOf = (changes: readonly RowVersionOutput[], position: number): RowVersionOutput | undefined => changes[changes.length - 1 - position];

/** Returns the value of a property before a commit; undefined if the commit created the entity or is not known. */
export function valueBefore(changes: readonly RowVersionOutput[], commit: string, property: string): { value: unknown } | undefined {
  const change = changes.find((each) => each.graph_commit_id === commit);
  if (change === undefined || change.before === null || !change.properties.includes(property)) return undefined;
  return { value: change.before[property] ?? null };
}

/** Returns the change that sets a property of one node; null if the node cannot be named by its key. */
export function putBackRequest(type: TypeOutput | undefined, data: Readonly<Record<string, unknown>>, property: string, value: unknown): QueryRequest | null {
  const declared = type?.properties.find((each) => each.name === property);
  if (type === undefined || type.from !== undefined || type.key.length === 0 || declared === undefined || type.key.includes(property)) return null;
  if (!isExact(value) || /^Blob\b/.test(declared.type)) return null;
  const params: Record<string, unknown> = {};
  const heads: string[] = [];
  const conditions: string[] = [];
  for (const [at, key] of type.key.entries()) {
    const keyed = type.properties.find((each) => each.name === key);
    if (keyed === undefined || !isExact(data[key]) || data[key] === null || data[key] === undefined) return null;
    heads.push(`$k${at}: ${parameterType(keyed.type)}`);
    conditions.push(`${key} = $k${at}`);
    params[`k${at}`] = data[key];
  }
  if (value !== null) {
    heads.push(`$value: ${parameterType(declared.type)}`);
    params["value"] = value;
  }
  const text = `query put_back(${heads.join(", ")}) {\n    update ${type.name} set { ${property}: ${value === null ? "null" : "$value"} } where ${conditions.join(" and ")}\n}`;
  return { text, name: null, params };
}

/** The type of a parameter for a property: enums are texts, and a missing value is written as null. */
const parameterType = (type: string): string => (/^enum\b/i.test(type) ? "String" : type.replace(/\?$/, ""));

/** False for an integer that JavaScript cannot hold exactly. */
const isExact = (value: unknown): boolean => typeof value !== "number" || !Number.isInteger(value) || Number.isSafeInteger(value);

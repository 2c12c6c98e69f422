/** Settings of a search in the link: the text, and for each side (A, B) types, ranking and filters. */
import type { CatalogOutput, PropertyOutput } from "../../api/types";
import type { SearchRequest } from "../../source/source";

export const WAYS = ["both", "words", "meaning"] as const;
export type Way = (typeof WAYS)[number];
export type Side = "a" | "b";
export const OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "in", "contains", "starts_with", "icontains"] as const;

export interface Condition {
  readonly property: string;
  readonly operator: string;
  readonly value: string;
}

export interface Settings {
  readonly type: string;
  readonly by: Way;
  readonly where: readonly Condition[];
}

type Params = Readonly<Record<string, string>>;
const nameOf = (side: Side, member: string): string => (side === "a" ? member : `b_${member}`);

/** Reads the settings of a side; a damaged filter counts as none. */
export function settingsOf(params: Params, side: Side): Settings {
  const by = WAYS.find((way) => way === params[nameOf(side, "by")]) ?? "both";
  return { type: params[nameOf(side, "type")] ?? "", by, where: conditionsOf(params[nameOf(side, "where")] ?? "") };
}

/** Returns the parameters that hold the settings of a side. */
export function paramsOf(settings: Settings, side: Side): Record<string, string> {
  const where = settings.where.length === 0 ? "" : JSON.stringify(settings.where.map((each) => [each.property, each.operator, each.value]));
  return { [nameOf(side, "type")]: settings.type, [nameOf(side, "by")]: settings.by === "both" ? "" : settings.by, [nameOf(side, "where")]: where };
}

function conditionsOf(text: string): Condition[] {
  try {
    const listed: unknown = JSON.parse(text || "[]");
    if (!Array.isArray(listed)) return [];
    return listed.flatMap((each: unknown) => {
      if (!Array.isArray(each) || each.length !== 3 || !each.every((part) => typeof part === "string")) return [];
      const [property, operator, value] = each as [string, string, string];
      return OPERATORS.some((known) => known === operator) ? [{ property, operator, value }] : [];
    });
  } catch {
    return [];
  }
}

const NUMBERS = /^(I|U|F)(8|16|32|64)$/;

/** Returns a typed value of a filter: numbers and booleans by the type of the property, lists for `in`. */
export function filterValue(condition: Condition, type: string): unknown {
  const one = (text: string): unknown => {
    const trimmed = text.trim();
    if (NUMBERS.test(type) && trimmed !== "" && Number.isFinite(Number(trimmed))) return Number(trimmed);
    return type === "Bool" && /^(true|false)$/.test(trimmed) ? trimmed === "true" : text;
  };
  return condition.operator === "in" ? condition.value.split(",").map((each) => one(each.trim())) : one(condition.value);
}

/** Returns the type of a property in the searched types, without `?` and brackets. */
export function typeOf(catalog: CatalogOutput | undefined, searched: string, property: string): string {
  const types = (catalog?.nodes ?? []).filter((type) => searched === "" || type.name === searched);
  const found = types.flatMap((type) => type.properties).find((each) => each.name === property);
  return found === undefined ? "String" : found.type.replace(/[[\]?]/g, "");
}

/** Returns the properties that a filter can compare, by name. */
export function filterable(catalog: CatalogOutput | undefined, searched: string): PropertyOutput[] {
  const types = (catalog?.nodes ?? []).filter((type) => searched === "" || type.name === searched);
  const byName = new Map(types.flatMap((type) => type.properties).map((each) => [each.name, each]));
  return [...byName.values()].filter((each) => !/^(Vector|Blob)/.test(each.type)).sort((a, b) => a.name.localeCompare(b.name));
}

/** Returns the request of a side. */
export function requestOf(text: string, settings: Settings, catalog: CatalogOutput | undefined, limit: number): SearchRequest {
  const filters: Record<string, Record<string, unknown>> = {};
  for (const each of settings.where) {
    if (each.value === "") continue;
    const known = (filters[each.property] ??= {});
    known[each.operator] = filterValue(each, typeOf(catalog, settings.type, each.property));
  }
  const given = Object.keys(filters).length === 0 ? {} : { filters };
  return { text, types: settings.type === "" ? [] : [settings.type], by: settings.by, limit, ...given };
}

/** The rank of a hit with B against its rank with A: above 0 is a rise, null is a hit that A does not show. */
export function moveOf(a: readonly { type: string; id: string; rank: number }[], hit: { type: string; id: string; rank: number }): number | null {
  const before = a.find((each) => each.type === hit.type && each.id === hit.id);
  return before === undefined ? null : before.rank - hit.rank;
}

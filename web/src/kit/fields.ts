/** Fields for values of a type: their kind, and the JSON value of what was typed. */

export type FieldKind = "text" | "integer" | "number" | "bool" | "enum" | "date" | "datetime" | "list";

export type FieldFault = "integer" | "number" | "required" | "list";

export const isOptional = (type: string): boolean => type.endsWith("?");

export function fieldKind(type: string): FieldKind {
  const base = type.replace(/\?$/, "");
  if (base.startsWith("[")) return "list";
  if (base.startsWith("enum(")) return "enum";
  if (/^[IU]\d+$/.test(base)) return "integer";
  if (/^F\d+$/.test(base)) return "number";
  if (base === "Bool") return "bool";
  if (base === "Date") return "date";
  if (base === "DateTime") return "datetime";
  return "text";
}

/** Returns the values of an enum type. */
export const choicesOf = (type: string): string[] => (/^enum\((.*)\)\??$/.exec(type)?.[1] ?? "").split(",").map((each) => each.trim());

/** Returns the JSON value of a field, or the fault of its text. */
export function valueOf(type: string, text: string): { value: unknown } | { fault: FieldFault } {
  const kind = fieldKind(type);
  if (text === "") return isOptional(type) ? { value: null } : kind === "text" ? { value: "" } : { fault: "required" };
  if (kind === "integer") {
    if (!/^[+-]?\d+$/.test(text)) return { fault: "integer" };
    return { value: Number.isSafeInteger(Number(text)) ? Number(text) : text };
  }
  if (kind === "number") return Number.isFinite(Number(text)) ? { value: Number(text) } : { fault: "number" };
  if (kind === "bool") return { value: text === "true" };
  if (kind === "list") return listOf(type, text);
  if (type.startsWith("Vector") && text.trimStart().startsWith("[")) return listOf("[F32]", text);
  return { value: text };
}

/** A list is one item per line, or a JSON array. */
function listOf(type: string, text: string): { value: unknown } | { fault: "list" } {
  if (text.trimStart().startsWith("[")) {
    try {
      return { value: JSON.parse(text) as unknown };
    } catch {
      return { fault: "list" };
    }
  }
  const item = type.replace(/\?$/, "").slice(1, -1);
  const items = text.split("\n").map((line) => valueOf(item, line.trim()));
  return items.some((each) => "fault" in each) ? { fault: "list" } : { value: items.map((each) => ("value" in each ? each.value : null)) };
}

/** Returns the text of a field for a value; the inverse of `valueOf`. */
export function fieldText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Values of properties as typed text. */

const INTEGER = /^[IU]\d+$/;
const REAL = /^F\d+$/;

export interface TypedValue {
  readonly value?: unknown;
  readonly valid: boolean;
}

/** Returns the text of a value for a field. */
export function fieldText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Reads a text as a value of a property type such as `I64?`; an empty text of an optional property is null. */
export function readField(text: string, type: string): TypedValue {
  const optional = type.endsWith("?");
  const plain = optional ? type.slice(0, -1) : type;
  if (text === "" && optional) return { value: null, valid: true };
  if (INTEGER.test(plain)) return integer(text.trim());
  if (REAL.test(plain)) return text.trim() !== "" && Number.isFinite(Number(text)) ? { value: Number(text), valid: true } : { valid: false };
  if (plain === "Bool") return text === "true" || text === "false" ? { value: text === "true", valid: true } : { valid: false };
  if (plain.startsWith("[") || plain.startsWith("Vector")) return list(text);
  return { value: text, valid: true };
}

/** Integers beyond 2^53 stay digits. */
function integer(text: string): TypedValue {
  if (!/^-?\d+$/.test(text)) return { valid: false };
  return { value: Number.isSafeInteger(Number(text)) ? Number(text) : text, valid: true };
}

function list(text: string): TypedValue {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? { value, valid: true } : { valid: false };
  } catch {
    return { valid: false };
  }
}

/** Colours of types: the position of a type in the schema decides, so that a type has one colour on every screen. */
import type { CatalogOutput } from "../api/types";

export const KINDS = 8;

export function kindOf(catalog: CatalogOutput | undefined, type: string): number {
  const at = catalog?.nodes.findIndex((each) => each.name === type) ?? -1;
  return at < 0 ? KINDS - 2 : at % KINDS;
}

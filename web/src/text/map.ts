/** Words of the map of vectors. */
import { count } from "./en";

export const mapText = {
  title: "Map",
  vectors: "Vectors",
  colour: "Colour by",
  noColour: "type",
  search: "Find on the map",
  searchHint: "A question, marked by a cross",
  find: "Find",
  move: "Move",
  moveHint: "Dragging moves the map instead of selecting points",
  none: "No node type has a vector.",
  noneHint: "Declare one in the schema, such as",
  noPoints: "No node has a value of this vector.",
  sentence: (n: number, what: string) => `Map of ${what}: ${count(n, "point", "points")}. Near points have similar vectors. The list shows the same nodes.`,
  shown: (shown: number, total: number) => (shown === total ? count(total, "point", "points") : `${shown.toLocaleString()} of ${count(total, "point", "points")}`),
  selected: (n: number) => `${n.toLocaleString()} selected`,
  clear: "Clear",
  copyIds: "Copy ids",
  list: "Nodes of the map",
  cut: (shown: number, total: number) => `The first ${shown.toLocaleString()} of ${total.toLocaleString()}`,
  groups: "Groups",
  missing: "no value",
  others: "others",
  cross: (n: number) => `The cross is the middle of the ${count(n, "nearest node", "nearest nodes")}, which have rings.`,
  noHit: "The search finds no node by meaning.",
} as const;

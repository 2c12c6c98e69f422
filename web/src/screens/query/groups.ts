/** Groups of a result: the query with its rows replaced by counts, and the bubbles of the counted groups. */
import type { ResultTable } from "../../api/result";
import type { CatalogOutput } from "../../api/types";
import { valueText } from "../../kit/Value";
import { PictureBuilder } from "../../picture/build";
import type { PictureData } from "../../picture/scene";
import type { QueryRequest } from "../../source/source";
import { bare } from "./params";

export const GROUPS_MAX = 60;
const OPTIONS_MAX = 14;
const SIZE_MIN = 7;
const SIZE_MAX = 34;

/** A node column of a result and the variable that it shows. */
interface NodeColumn {
  readonly index: number;
  readonly variable: string;
  readonly type: string;
}

/** `type`, or a variable and its property, such as `a.role`. */
export type Grouping = string;

/** Returns the place of the word `return` of the query that is run, and the text behind its results; null if there is none. */
function resultsOf(text: string): { start: number; rest: string } | null {
  const code = bare(text);
  const found = [...code.matchAll(/\breturn\b/g)].at(-1);
  if (found === undefined) return null;
  // A named query ends with the brace that its head opened.
  const depth = [...code.slice(0, found.index)].reduce((open, sign) => open + (sign === "{" ? 1 : sign === "}" ? -1 : 0), 0);
  return { start: found.index, rest: "}".repeat(Math.max(0, depth)) };
}

/** Returns the node columns with their variables; a column can have another name than its variable. */
export function nodeColumns(table: ResultTable, text: string): NodeColumn[] {
  const at = resultsOf(text)?.start ?? 0;
  const results = bare(text).slice(at);
  return table.columns.flatMap((column, index) => {
    if (column.kind !== "node") return [];
    const renamed = new RegExp(`\\$(\\w+)\\s+as\\s+${column.name.replace(/\W/g, "\\$&")}\\b`).exec(results)?.[1];
    return [{ index, variable: renamed ?? column.name, type: column.type ?? "" }];
  });
}

/** Returns the groupings of a result: by type, then by properties with few values first. */
export function groupingsOf(columns: readonly NodeColumn[], catalog: CatalogOutput | undefined): Grouping[] {
  const properties = columns.flatMap(({ variable, type }) => {
    const declared = catalog?.nodes.find((each) => each.name === type);
    return (declared?.properties ?? []).filter((each) => !declared?.key.includes(each.name) && /^(enum|Bool|String|I\d|U\d|Date\b)/.test(each.type)).map((each) => ({ name: `${variable}.${each.name}`, few: /^(enum|Bool)/.test(each.type) }));
  });
  return ["type", ...[...properties.filter((each) => each.few), ...properties.filter((each) => !each.few)].slice(0, OPTIONS_MAX).map((each) => each.name)];
}

/** Returns the request that counts the groups of a result; null if the text has no results. */
export function groupRequest(request: QueryRequest, columns: readonly NodeColumn[], grouping: Grouping): QueryRequest | null {
  const results = resultsOf(request.text);
  if (results === null) return null;
  const counts = columns.map(({ variable }, at) => `count(distinct $${variable}) as n${at}`);
  const key = grouping === "type" ? [] : [`$${grouping} as value`];
  const first = Math.max(0, columns.findIndex(({ variable }) => grouping.startsWith(`${variable}.`)));
  const order = grouping === "type" ? "" : ` order { n${first} desc } limit ${GROUPS_MAX}`;
  return { ...request, text: `${request.text.slice(0, results.start)}return { ${[...key, ...counts].join(", ")} }${order} ${results.rest}` };
}

const asNumber = (value: unknown): number => Number(value ?? 0);

/** Returns the bubbles of counted groups, and their number. */
export function bubblesOf(counted: ResultTable, table: ResultTable, columns: readonly NodeColumn[], grouping: Grouping, catalog: CatalogOutput | undefined): { data: PictureData; groups: number } {
  const builder = new PictureBuilder(catalog, GROUPS_MAX + columns.length);
  const keyed = grouping === "type" ? 0 : 1;
  const most = Math.max(1, ...Array.from({ length: counted.rowCount }, (_, row) => columns.map((_, at) => asNumber(counted.cell(keyed + at, row)))).flat());
  const bubble = (type: string, id: string, label: string, count: number) => {
    const node = builder.node(type, id, `${label} · ${count.toLocaleString()}`);
    builder.size(node, SIZE_MIN + (SIZE_MAX - SIZE_MIN) * Math.sqrt(count / most));
    return node;
  };
  const hopsOf = (at: number) => table.hops.filter((hop) => hop.source === columns[at]?.index || hop.target === columns[at]?.index);
  if (grouping === "type") {
    const nodes = columns.map(({ variable, type }, at) => bubble(type, variable, `${variable}: ${type}`, asNumber(counted.cell(at, 0))));
    for (const hop of table.hops) builder.edge(find(columns, nodes, hop.source), find(columns, nodes, hop.target), hop.label);
    return { data: builder.build(), groups: columns.length };
  }
  const grouped = Math.max(0, columns.findIndex(({ variable }) => grouping.startsWith(`${variable}.`)));
  const centre = columns[grouped] as NodeColumn;
  for (let row = 0; row < counted.rowCount; row += 1) {
    const value = valueText(counted.cell(0, row));
    const group = bubble(centre.type, value, value, asNumber(counted.cell(1 + grouped, row)));
    for (const hop of hopsOf(grouped)) {
      const at = columns.findIndex((column) => column.index === (hop.source === centre.index ? hop.target : hop.source));
      const other = columns[at];
      if (other === undefined || at === grouped) continue;
      const node = builder.node(other.type, other.variable, `${other.variable}: ${other.type}`);
      const label = `${hop.label} ${asNumber(counted.cell(1 + at, row)).toLocaleString()}`;
      if (hop.source === centre.index) builder.edge(group, node, label);
      else builder.edge(node, group, label);
    }
  }
  return { data: builder.build(), groups: counted.rowCount };
}

function find(columns: readonly NodeColumn[], nodes: readonly (number | null)[], index: number): number | null {
  return nodes[columns.findIndex((column) => column.index === index)] ?? null;
}

/** Requests of schemas: texts, plans and changes, and figures of the stored values. */
import type { SchemaApplyOutput, SchemaOutput, SchemaPlanOutput } from "../api/schemaTypes";
import { source } from "../state/context";
import type { Place } from "./source";

export interface SchemaChange {
  readonly text: string;
  readonly branch: string;
  readonly allowDataLoss: boolean;
}

export interface SchemaApplication extends SchemaChange {
  /** The commit that was planned against; the change is refused if the branch has moved. */
  readonly commit: string;
  readonly message: string;
  readonly allowQueryBreakage: boolean;
}

const bodyOf = (change: SchemaChange) => ({
  schema_source: change.text,
  branch: change.branch,
  allow_data_loss: change.allowDataLoss,
});

export async function schemaText(place: Place, signal?: AbortSignal): Promise<string> {
  return (await source.ask<SchemaOutput>(place.graph, "schema", { params: { at: place.commit }, signal })).schema_source;
}

export const planSchema = (graph: string, change: SchemaChange): Promise<SchemaPlanOutput> =>
  source.ask(graph, "schema/plan", { body: bodyOf(change), repeatable: true });

export function applySchema(graph: string, change: SchemaApplication): Promise<SchemaApplyOutput> {
  const { message, allowQueryBreakage, commit } = change;
  const body = { ...bodyOf(change), allow_query_breakage: allowQueryBreakage, ...(message === "" ? {} : { message }) };
  return source.ask(graph, "schema/apply", { body, headers: { "If-Match": `"${commit}"` } });
}

export const createBranch = (graph: string, name: string, commit: string): Promise<unknown> =>
  source.ask(graph, "branches", { body: { name, at: commit } });

/** Returns the rows of a small query, as JSON. */
export async function smallRows(place: Place, query: string, signal?: AbortSignal): Promise<Record<string, unknown>[]> {
  const body = { query, at: place.commit };
  return (await source.ask<{ rows: Record<string, unknown>[] }>(place.graph, "query", { body, repeatable: true, signal })).rows;
}

/** The documents of schema changes, as far as the page reads them; see `types.ts`. */

export interface SchemaOutput {
  schema_source: string;
}

export interface SchemaPlanOutput {
  supported: boolean;
  step_count: number;
  steps: Record<string, unknown>[];
  descriptions?: string[];
  rename_hints?: string[];
  losses?: string[];
}

export interface SchemaApplyOutput {
  applied: boolean;
  commit_id: string | null;
  step_count: number;
}

/** Documents of differences and merges, as far as the page reads them; compared with OpenAPI like those of `types.ts`. */

export type ChangeOp = "insert" | "update" | "delete";
export type Row = Readonly<Record<string, unknown>>;

export interface OpCountOutput {
  insert: number;
  update: number;
  delete: number;
}

export interface DiffSummaryOutput {
  tables: Record<string, OpCountOutput>;
  schema_steps: string[];
  from_commit_id: string;
  to_commit_id: string;
}

export interface EndpointsOutput {
  src: string | null;
  dst: string | null;
}

export interface RowChangeOutput {
  table_key: string;
  kind: "node" | "edge";
  type_name: string;
  id: string;
  op: ChangeOp;
  before: Row | null;
  after: Row | null;
  endpoints?: EndpointsOutput;
}

export interface DiffOutput {
  changes: RowChangeOutput[];
  next?: string;
}

export interface DiffNodeOutput {
  type: string;
  id: string;
  op: ChangeOp | null;
  data: Record<string, unknown>;
}

export interface NodeNameOutput {
  type: string;
  id: string;
}

export interface DiffEdgeOutput {
  type: string;
  id: string;
  op: ChangeOp | null;
  source: NodeNameOutput;
  target: NodeNameOutput;
}

export interface DiffGraphOutput {
  nodes: DiffNodeOutput[];
  edges: DiffEdgeOutput[];
  changes_omitted: number;
  neighbors_omitted: boolean;
}

export interface ConflictRowOutput {
  id: string;
  table_key: string;
  row_id: string;
  row: Row | null;
  ours: Row | null;
  theirs: Row | null;
}

export interface MergeConflictOutput {
  id: string;
  table_key: string;
  row_id: string | null;
  kind: string;
  message: string;
  properties: string[];
  base: Row | null;
  ours: Row | null;
  theirs: Row | null;
  rows?: ConflictRowOutput[];
}

export interface SettledRowOutput {
  id: string;
  table_key: string;
  row_id: string;
  row: Row | null;
}

export interface MergeTableOutput {
  inserted: number;
  updated: number;
  deleted: number;
}

export interface MergePreviewOutput {
  source: string;
  target: string;
  outcome: "already_up_to_date" | "fast_forward" | "merged";
  tables: Record<string, MergeTableOutput>;
  dropped_tables: string[];
  schema_steps: string[];
  conflicts: MergeConflictOutput[];
  hidden_conflicts?: number;
  hidden_changes?: boolean;
  settled?: SettledRowOutput[];
}

export interface BranchMergeOutput {
  source: string;
  target: string;
  outcome: "already_up_to_date" | "fast_forward" | "merged";
  commit_id: string | null;
  branch_deleted?: boolean;
  branch_delete_error?: string;
}

export interface FeedTypeOutput {
  id: string;
  name: string;
}

export interface ImageChangeOutput {
  kind: "node" | "edge";
  type: FeedTypeOutput;
  id: string;
}

export interface CommitChangesAnswerOutput {
  changes: ImageChangeOutput[];
  next_page_token?: string;
}

export interface RevertPreviewOutput {
  outcome: "already_up_to_date" | "fast_forward" | "merged";
  tables: Record<string, MergeTableOutput>;
  schema_steps: string[];
  conflicts: MergeConflictOutput[];
  hidden_conflicts?: number;
}

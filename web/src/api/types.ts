/**
 * The documents that the page reads, as far as it reads them.
 *
 * `tests/ui/test_api_types.py` compares every interface with the component of the same name in the OpenAPI document: a
 * member that the server does not send, or sends only sometimes without `?`, fails there.
 */
import type { OpCountOutput } from "./reviewTypes";

export interface SignInOutput {
  issuer: string;
  client_id: string;
  scopes: string[];
}

export interface ExplorerConfigOutput {
  version: string;
  needs_token: boolean;
  single_graph: boolean;
  default_graph: string | null;
  read_only: boolean;
  query_s: number;
  sign_in: SignInOutput[];
}

export interface AllowedBranchOutput {
  branch: string;
  actions: string[];
}

export interface AllowedGraphOutput {
  graph_id: string;
  actions: string[];
  branches: AllowedBranchOutput[];
}

export interface MeOutput {
  actor_id: string | null;
  groups: string[];
  attributes: Record<string, unknown>;
  actions: string[];
  graphs: AllowedGraphOutput[];
  token_expires_at?: number;
}

export interface CommitOutput {
  graph_commit_id: string;
  manifest_branch: string | null;
  parent_commit_id: string | null;
  merged_parent_commit_id: string | null;
  actor_id: string | null;
  created_at: number;
  message: string | null;
  kind: string;
  changed: string[];
}

export interface CommitListOutput {
  commits: CommitOutput[];
  next?: string;
  heads?: Record<string, string>;
  tags?: Record<string, string>;
}

export interface ComparedBranchOutput {
  name: string;
  ahead: number;
  behind: number;
}

export interface BranchOutput {
  name: string;
  head: CommitOutput;
  owner: string | null;
  description: string | null;
  compared?: ComparedBranchOutput;
}

export interface BranchListOutput {
  branches: string[];
  next?: string;
  statuses?: BranchOutput[];
}

export interface TagOutput {
  name: string;
  graph_commit_id: string;
  created_at: number;
  actor_id: string | null;
  message: string | null;
}

export interface TagListOutput {
  tags: TagOutput[];
}

export interface RevertOutput {
  branch: string;
  commit_id: string | null;
}

export interface SnapshotTableOutput {
  table_key: string;
  row_count: number;
}

export interface SnapshotOutput {
  branch: string | null;
  graph_commit_id: string;
  tables: SnapshotTableOutput[];
}

export interface PropertyOutput {
  name: string;
  type: string;
  optional: boolean;
  embed?: string;
  number?: number;
  description?: string;
}

export interface ConstraintOutput {
  kind: "key" | "unique" | "index" | "range" | "check";
  columns: string[];
  text: string;
}

export interface TypeOutput {
  name: string;
  key: string[];
  properties: PropertyOutput[];
  constraints: ConstraintOutput[];
  number?: number;
  implements?: string[];
  from?: string;
  to?: string;
  cardinality?: string;
  description?: string;
}

export interface CatalogOutput {
  hash: string;
  interfaces: TypeOutput[];
  nodes: TypeOutput[];
  edges: TypeOutput[];
}

export interface QueryParameterOutput {
  name: string;
  type: string;
  kind: string;
  item_kind?: string;
  vector_dim?: number;
  nullable: boolean;
}

export interface StoredQueryOutput {
  name: string;
  description?: string;
  mutation: boolean;
  params: QueryParameterOutput[];
  source?: string;
}

export interface StoredQueryListOutput {
  queries: StoredQueryOutput[];
}

export interface PlanNodeOutput {
  op: string;
  text: string;
  expected?: number;
  rows?: number;
  ms?: number;
  notes: string[];
  children: PlanNodeOutput[];
}

export interface ExplainOutput {
  text: string;
  plan_hash: string;
  plan?: PlanNodeOutput;
}

export interface ChangeOutput {
  branch: string;
  query_name: string;
  affected_nodes: number;
  affected_edges: number;
  commit: CommitOutput | null;
  tables?: Record<string, OpCountOutput>;
}

export interface QueryChangeOutput {
  stored: string[];
  unchanged: string[];
  commit: CommitOutput | null;
}

export interface SpanOutput {
  start: number;
  end: number;
}

export interface DiagnosticOutput {
  code: string;
  message: string;
  span?: SpanOutput | null;
  hint?: string | null;
}

export interface LintedQueryOutput {
  name: string;
  kind: "read" | "mutation";
  status: "ok" | "error";
  warnings: string[];
  error?: string;
  diagnostics?: DiagnosticOutput[];
}

export interface LintFindingOutput {
  severity: string;
  message: string;
  diagnostics?: DiagnosticOutput[];
}

export interface LintOutput {
  results: LintedQueryOutput[];
  findings: LintFindingOutput[];
}

export interface CandidateOutput {
  text: string;
  kind: string;
  type: string | null;
  description: string | null;
}

export interface CompletionOutput {
  start: number;
  end: number;
  candidates: CandidateOutput[];
}

export interface HoverWordOutput {
  start: number;
  end: number;
  title: string;
  description: string | null;
}

export interface HoverOutput {
  hover: HoverWordOutput | null;
}

export interface FormatOutput {
  text: string;
  changed: boolean;
}

export interface PropertyBlameOutput {
  property: string;
  value: unknown;
  known: boolean;
  graph_commit_id: string;
  actor_id: string | null;
  created_at: number;
  message: string | null;
}

export interface DegreeOutput {
  edge: string;
  direction: "out" | "in";
  type: string;
  count: number;
}

export interface EntityOutput {
  type: string;
  id: string;
  data: Record<string, unknown>;
  graph_commit_id: string;
  blame?: PropertyBlameOutput[];
  degrees?: DegreeOutput[];
}

export interface NeighborOutput {
  edge: string;
  direction: "out" | "in";
  edge_id: string;
  edge_data: Record<string, unknown>;
  type: string;
  id: string;
  data: Record<string, unknown>;
}

export interface NeighborListOutput {
  neighbors: NeighborOutput[];
  next?: string;
  total: number;
}

export interface RowVersionOutput {
  graph_commit_id: string;
  actor_id: string | null;
  created_at: number;
  message: string | null;
  op: "insert" | "update" | "delete" | "found";
  properties: string[];
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

export interface HistoryOutput {
  changes: RowVersionOutput[];
  next?: string;
}

export interface TermWeightOutput {
  term: string;
  word: string;
  weight: number;
  places: [number, number][];
}

export interface RankerShareOutput {
  by: "words" | "meaning";
  property: string | null;
  rank: number | null;
  score: number | null;
  share: number;
  terms?: TermWeightOutput[];
}

export interface SearchHitOutput {
  type: string;
  id: string;
  rank: number;
  score: number;
  data: Record<string, unknown>;
  why: RankerShareOutput[];
}

export interface RankOfOutput {
  type: string | null;
  id: string;
  rank: number | null;
  reason: "beyond" | "filtered" | "no_match" | "not_found" | null;
  message: string;
  filters: string[];
  why: RankerShareOutput[];
}

export interface SearchOutput {
  hits: SearchHitOutput[];
  counts: Record<string, number>;
  notes: string[];
  rank_of?: RankOfOutput[];
  next?: string;
}

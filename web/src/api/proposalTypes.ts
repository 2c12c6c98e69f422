/** The documents of proposals, as far as the page reads them; see `types.ts`. */

export type ProposalState = "draft" | "checking" | "blocked" | "ready" | "landing" | "landed" | "closed";

export interface BlockerOutput {
  code: string;
  message: string;
}

export interface ReviewOutput {
  actor_id: string;
  verdict: string;
  commit: string;
  counts: boolean;
  text: string | null;
  created_at: number;
}

export interface CheckOutput {
  name: string;
  state: string;
  required: boolean;
  details: string | null;
  commit: string | null;
  ms: number | null;
  actor_id: string | null;
  created_at: number | null;
}

export interface TrialOutput {
  base: string;
  source_head: string;
  commit: string | null;
  outcome: string;
  conflicts: number;
  current: boolean;
  schema_steps: string[];
}

export interface ProposalOutput {
  id: string;
  title: string;
  state: ProposalState;
  source: string;
  target: string;
  events: number;
  body: string | null;
  draft: boolean;
  source_head: string | null;
  target_head: string | null;
  comments: number;
  landed: string | null;
  closed_by: string | null;
  closed_why: string | null;
  actor_id: string | null;
  created_at: number;
  updated_at: number;
  labels: string[];
  reviewers: string[];
  blocked_by: BlockerOutput[];
  approvals: string[];
  reviews: ReviewOutput[];
  checks: CheckOutput[];
  trial: TrialOutput | null;
}

export interface ProposalListOutput {
  proposals: ProposalOutput[];
  next: string | null;
}

export interface CommentPlaceOutput {
  table_key: string;
  row_id: string;
  property?: string | null;
}

export interface CommentOutput {
  id: string;
  actor_id: string | null;
  created_at: number;
  edited_at: number | null;
  text: string;
  on: CommentPlaceOutput | null;
  reply_to: string | null;
  resolved: boolean;
}

export interface CommentListOutput {
  comments: CommentOutput[];
  hidden_comments: number;
}

export interface CheckRowsOutput {
  name: string;
  rows: Record<string, unknown>[];
  total: number;
  node_types: Record<string, string>;
}

export interface ProposalEventOutput {
  number: number;
  kind: string;
  actor_id: string | null;
  created_at: number;
  data: Record<string, unknown>;
}

export interface ProposalEventListOutput {
  events: ProposalEventOutput[];
}

/** The documents of administration, as far as the page reads them; compared with OpenAPI like those of `types.ts`. */

export interface OperationOutput {
  id: string;
  kind: string;
  state: "cancelled" | "done" | "failed" | "queued" | "running";
  graph_id: string | null;
  branch: string | null;
  actor_id: string | null;
  request_id: string;
  started_at: number;
  lane?: string;
  age_s?: number;
  query?: string;
  plan_hash?: string;
  rows?: number;
  finished_at?: number;
  result?: unknown;
  error?: ErrorOutput;
}

export interface ErrorOutput {
  error: string;
  code: string;
  reason: string;
  hint?: string;
}

export interface OperationListOutput {
  operations: OperationOutput[];
  next?: string;
}

export interface LaneOutput {
  name: string;
  running: number;
  queued: number;
  limit: number;
}

export interface PlanOutput {
  graph_id: string;
  plan_hash: string;
  query: string | null;
  count: number;
  total_ms: number;
  max_ms: number;
  rows: number;
}

export interface ServedTableOutput {
  table_key: string;
  version: number;
  fragments: number;
  rows?: number;
  uncovered_rows?: number;
}

export interface CacheOutput {
  kind: string;
  hits: number;
  misses: number;
}

export interface ServedGraphOutput {
  graph_id: string;
  state: string;
  branches?: number;
  last_maintenance_at?: number;
  caches?: CacheOutput[];
  tables?: ServedTableOutput[];
  failure?: string;
}

export interface MemoryOutput {
  used_bytes: number;
  limit_bytes: number | null;
}

export interface ServerStatusOutput {
  version: string;
  mode: string;
  workers: number;
  uptime_s: number;
  draining: boolean;
  requests: number;
  connections: number;
  memory: MemoryOutput;
  rejected: Record<string, number>;
  lanes: LaneOutput[];
  plans: PlanOutput[];
  graphs: ServedGraphOutput[];
}

export interface WebhookFailureOutput {
  error: string;
  tries: number;
  next_try_at: number;
}

export interface WebhookOutput {
  name: string;
  graph_id: string;
  origin: string;
  state: "failed" | "ready" | "retrying" | "starting";
  delivered: number;
  dropped: number;
  last_delivered_at?: number;
  failure?: WebhookFailureOutput;
}

export interface WebhookListOutput {
  webhooks: WebhookOutput[];
}

export interface ConsideredRuleOutput {
  rule: string;
  matched: boolean;
  why: "action_not_listed" | "actor_not_in_group" | "condition" | "denies" | "no_effect" | "ok" | "scope";
  line?: number;
}

export interface PolicyExplainOutput {
  decision: "allow" | "deny";
  actor: string | null;
  action: string;
  branch: string | null;
  target_branch: string | null;
  matched_rule: string | null;
  message: string;
  reasons: string[];
  considered: ConsideredRuleOutput[];
}

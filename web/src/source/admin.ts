/** What the screen of administration asks for. Nothing here is kept: every answer is about this moment. */
import type { OperationListOutput, OperationOutput, PolicyExplainOutput, ServerStatusOutput, WebhookListOutput } from "../api/adminTypes";
import type { Client } from "../api/client";
import type { ExplainOutput } from "../api/types";

/** A request that a policy decides. Without an actor it is one of the caller. */
export interface Decision {
  readonly actor?: string | undefined;
  readonly action: string;
  readonly branch?: string | undefined;
  readonly target_branch?: string | undefined;
}

export type Maintenance = "optimize" | "indices" | "cleanup" | "verify";

export interface AdminSource {
  status(signal?: AbortSignal): Promise<ServerStatusOutput>;
  /** The metrics in the text format of Prometheus; null if the server collects none. */
  metrics(signal?: AbortSignal): Promise<string | null>;
  operations(signal?: AbortSignal): Promise<OperationOutput[]>;
  operation(id: string, signal?: AbortSignal): Promise<OperationOutput>;
  cancel(id: string): Promise<OperationOutput>;
  /** The plan of a query that ran before. */
  plan(graph: string, hash: string, signal?: AbortSignal): Promise<ExplainOutput>;
  decide(graph: string, decision: Decision, signal?: AbortSignal): Promise<PolicyExplainOutput>;
  webhooks(signal?: AbortSignal): Promise<WebhookListOutput>;
  /** Starts maintenance, which continues in the background. */
  maintain(graph: string, what: Maintenance, body: Readonly<Record<string, unknown>>): Promise<OperationOutput>;
}

export function httpAdmin(client: Client, routePath: (graph: string, route: string) => string): AdminSource {
  return {
    status: (signal) => client.json<ServerStatusOutput>("status", { signal }),
    async metrics(signal) {
      const response = await client.answer("metrics", { accept: "text/plain, application/json", signal });
      return response.ok ? response.text() : null;
    },
    operations: async (signal) => (await client.json<OperationListOutput>("operations", { params: { limit: 200 }, signal })).operations,
    operation: (id, signal) => client.json<OperationOutput>(`operations/${encodeURIComponent(id)}`, { signal }),
    cancel: (id) => client.json<OperationOutput>(`operations/${encodeURIComponent(id)}`, { method: "DELETE" }),
    plan: (graph, hash, signal) => client.json<ExplainOutput>(routePath(graph, `plans/${encodeURIComponent(hash)}`), { signal }),
    decide: (graph, decision, signal) => client.json<PolicyExplainOutput>(routePath(graph, "policy/explain"), { body: decision, repeatable: true, signal }),
    webhooks: (signal) => client.json<WebhookListOutput>("webhooks", { signal }),
    maintain: (graph, what, body) => client.json<OperationOutput>(routePath(graph, `maintenance/${what}`), { body }),
  };
}

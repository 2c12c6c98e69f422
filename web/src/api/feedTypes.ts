/** Documents of the change feed, as far as the page reads them; compared with OpenAPI like those of `types.ts`. */
import type { ChangeOp, Row } from "./reviewTypes";

export interface CauseOutput {
  graph_commit_id: string;
  parent_commit_id: string | null;
  actor_id: string | null;
  authored_at: number;
  message: string | null;
  schema_changed: boolean;
}

export interface FeedTypeOutput {
  id: string;
  name: string;
}

export interface ImageOutput {
  properties: Row;
}

export interface ImageChangeOutput {
  kind: "node" | "edge";
  type: FeedTypeOutput;
  id: string;
  op: ChangeOp;
  before?: ImageOutput;
  after?: ImageOutput;
}

export interface ChangeBlockOutput {
  cause: CauseOutput;
  changes: ImageChangeOutput[];
}

export interface ChangesOutput {
  blocks: ChangeBlockOutput[];
  cursor?: string;
  caught_up: boolean;
}

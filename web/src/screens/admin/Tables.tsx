/** The tables of the graph: rows, fragments, rows that no index covers, versions. */
import type { ServedGraphOutput } from "../../api/adminTypes";
import { Skeleton } from "../../kit/load";
import { ProblemBox } from "../../kit/ProblemBox";
import { Time } from "../../kit/Time";
import { link } from "../../state/location";
import { admin } from "../../text/admin";
import { status, statusProblem } from "./samples";

const words = admin.tables;

export function Tables() {
  if (statusProblem.value !== null) return <ProblemBox problem={statusProblem.value} />;
  const now = status.value;
  if (now === null) return <Skeleton />;
  const graph = now.graphs.find((each) => each.graph_id === link.value.graph) ?? now.graphs[0];
  return (
    <section class="card" aria-labelledby="tables">
      <header>
        <h2 id="tables">{words.title}</h2>
        <span class="muted small">
          {words.maintained}: {graph?.last_maintenance_at === undefined ? words.never : <Time at={graph.last_maintenance_at} />}
        </span>
      </header>
      {graph?.tables === undefined || graph.tables.length === 0 ? <p class="empty">{graph?.failure ?? words.none}</p> : <Rows graph={graph} />}
    </section>
  );
}

function Rows({ graph }: { graph: ServedGraphOutput }) {
  const number = (value: number | undefined) => (value === undefined ? words.hidden : value.toLocaleString());
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-labelledby="tables">
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">{words.table}</th>
            {[words.rows, words.fragments, words.uncovered, words.version].map((title) => (
              <th scope="col" class="number" key={title}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(graph.tables ?? []).map((table) => (
            <tr key={table.table_key}>
              <th scope="row">{table.table_key}</th>
              <td class="number">{number(table.rows)}</td>
              <td class="number">{table.fragments.toLocaleString()}</td>
              <td class="number">{(table.uncovered_rows ?? 0) > 0 ? <span class="badge warn">{number(table.uncovered_rows)}</span> : number(table.uncovered_rows)}</td>
              <td class="number">{table.version.toLocaleString()}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Running work with Cancel, and the plans that took the most time in the last hour. */
import { useEffect, useState } from "preact/hooks";

import type { OperationOutput, PlanOutput } from "../../api/adminTypes";
import { problemOf, type Problem } from "../../api/problem";
import { announce } from "../../kit/announce";
import { Loading, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { PlanTree } from "../../kit/PlanTree";
import { ProblemBox } from "../../kit/ProblemBox";
import { may, source } from "../../state/context";
import { go, link } from "../../state/location";
import { admin } from "../../text/admin";
import { status, statusProblem } from "./samples";

const words = admin.queries;
const EVERY_MS = 2000;
const OWN = new Set(["getStatus", "getMetrics"]);

/** The work of this process, asked for again and again while the screen is shown. */
export function useOperations(): { operations: readonly OperationOutput[] | null; problem: Problem | null; refresh(): void } {
  const [operations, setOperations] = useState<readonly OperationOutput[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const read = () =>
      source.admin.operations(abort.signal).then(
        (found) => {
          setOperations(found);
          setProblem(null);
        },
        (error: unknown) => setProblem(problemOf(error)),
      );
    void read();
    const timer = setInterval(() => void read(), EVERY_MS);
    return () => {
      clearInterval(timer);
      abort.abort();
    };
  }, [asked]);
  return { operations, problem, refresh: () => setAsked((n) => n + 1) };
}

const nameOf = (operation: OperationOutput): string => operation.query ?? (operation.plan_hash === undefined ? operation.kind : words.unnamed);

export function Queries() {
  const { operations, problem, refresh } = useOperations();
  const pending = (operations ?? []).filter((each) => (each.state === "running" || each.state === "queued") && !OWN.has(each.kind));
  return (
    <div class="stack">
      <section class="card" aria-labelledby="running">
        <header>
          <h2 id="running">{words.running}</h2>
          <span class="badge">{pending.length}</span>
        </header>
        {problem === null ? null : <ProblemBox problem={problem} />}
        {pending.length === 0 ? <p class="empty">{words.runningNone}</p> : <Running operations={pending} refresh={refresh} />}
      </section>
      <Costly />
    </div>
  );
}

function Running({ operations, refresh }: { operations: readonly OperationOutput[]; refresh(): void }) {
  const open = link.value.params["op"];
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-labelledby="running">
      <table class="plain-table">
        <thead>
          <tr>
            {[words.query, words.kind, words.actor, words.branch, words.state, words.age, words.rows].map((title) => (
              <th scope="col" key={title}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {operations.map((each) => (
            <>
              <tr key={each.id}>
                <td>
                  <RowButton name={nameOf(each)} open={open === each.id} onClick={() => go({ params: { tab: "queries", op: open === each.id ? "" : each.id } })} />
                </td>
                <td>{each.kind}</td>
                <td>{each.actor_id === null ? "" : <Plain text={each.actor_id} />}</td>
                <td>{each.branch === null ? "" : <Plain text={each.branch} />}</td>
                <td>{words.states[each.state]}</td>
                <td class="number">{each.age_s === undefined ? "" : words.s(each.age_s)}</td>
                <td class="number">{each.rows?.toLocaleString() ?? ""}</td>
              </tr>
              {open === each.id ? (
                <tr key={`${each.id} plan`}>
                  <td colSpan={7}>
                    <RunningDetails operation={each} refresh={refresh} />
                  </td>
                </tr>
              ) : null}
            </>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RowButton({ name, open, onClick }: { name: string; open: boolean; onClick(): void }) {
  return (
    <button type="button" class="row-button" aria-expanded={open} title={words.details(name)} onClick={onClick}>
      <Plain text={name} />
    </button>
  );
}

function RunningDetails({ operation, refresh }: { operation: OperationOutput; refresh(): void }) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const cancel = async () => {
    try {
      await source.admin.cancel(operation.id);
      announce(words.cancelled);
      refresh();
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  return (
    <div class="stack tight">
      <div class="row wrap">
        <button type="button" class="button danger" onClick={() => void cancel()}>
          {words.cancel}
        </button>
        <span class="muted small">{words.request(operation.request_id)}</span>
      </div>
      {problem === null ? null : <ProblemBox problem={problem} />}
      {operation.plan_hash === undefined ? <p class="muted">{words.noPlan}</p> : <KnownPlan graph={operation.graph_id ?? ""} hash={operation.plan_hash} />}
    </div>
  );
}

/** The plan of a query that ran before. */
function KnownPlan({ graph, hash }: { graph: string; hash: string }) {
  const allowed = may("admin");
  const loaded = useLoad(allowed ? `${graph} ${hash}` : null, (signal) => source.admin.plan(graph, hash, signal));
  if (!allowed) return <p class="muted">{words.planRefused}</p>;
  return <Loading of={loaded}>{(explained) => <PlanTree explained={explained} measured={false} />}</Loading>;
}

function Costly() {
  const now = status.value;
  const open = link.value.params["plan"];
  if (statusProblem.value !== null) return <ProblemBox problem={statusProblem.value} />;
  const plans = now?.plans ?? [];
  return (
    <section class="card" aria-labelledby="costly">
      <header>
        <h2 id="costly">{words.costly}</h2>
      </header>
      {plans.length === 0 ? (
        <p class="empty">{words.costlyNone}</p>
      ) : (
        <div class="scroll-x" tabIndex={0} role="region" aria-labelledby="costly">
          <table class="plain-table">
            <thead>
              <tr>
                {[words.query, words.count, words.total, words.max, words.rows].map((title, at) => (
                  <th scope="col" key={title} class={at === 0 ? undefined : "number"}>
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {plans.map((each) => (
                <CostlyRow key={`${each.graph_id} ${each.plan_hash}`} plan={each} open={open === each.plan_hash} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function CostlyRow({ plan, open }: { plan: PlanOutput; open: boolean }) {
  return (
    <>
      <tr>
        <td>
          <RowButton name={plan.query ?? words.unnamed} open={open} onClick={() => go({ params: { tab: "queries", plan: open ? "" : plan.plan_hash } })} />
        </td>
        <td class="number">{plan.count.toLocaleString()}</td>
        <td class="number">{words.ms(plan.total_ms)}</td>
        <td class="number">{words.ms(plan.max_ms)}</td>
        <td class="number">{plan.rows.toLocaleString()}</td>
      </tr>
      {open ? (
        <tr>
          <td colSpan={5}>
            <KnownPlan graph={plan.graph_id} hash={plan.plan_hash} />
          </td>
        </tr>
      ) : null}
    </>
  );
}

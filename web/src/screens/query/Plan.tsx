/** The plan of the query, or its profile. */
import { PlanTree } from "../../kit/PlanTree";
import { ProblemBox } from "../../kit/ProblemBox";
import { text } from "../../text/en";
import type { Workspace } from "./workspace";

export function Plan({ space }: { space: Workspace }) {
  const plan = space.plan.value;
  if (plan === null) return <p class="empty">{space.running.value === "plan" ? text.loading : text.query.planNone}</p>;
  if ("problem" in plan) {
    return (
      <div class="pad">
        <ProblemBox problem={plan.problem} />
      </div>
    );
  }
  return <PlanTree explained={plan.explained} measured={plan.measured} />;
}

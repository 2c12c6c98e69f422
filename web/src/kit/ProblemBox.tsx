/**
 * A problem as its reader needs it: the sentence, where it is, what to do, its code and the id of the request.
 *
 * A denied request explains itself on a click, a lost race lists the commits that won it. Both are loaded when needed.
 */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

import { isDenied, isLostRace, type Problem, reportOf } from "../api/problem";
import { config } from "../state/context";
import { denialOf, lastDenial } from "../state/denial";
import { link } from "../state/location";
import { text } from "../text/en";
import { copyText } from "./announce";
import { Plain } from "./Plain";

interface Props {
  problem: Problem;
  onRetry?(): void;
}

export function ProblemBox({ problem, onRetry }: Props) {
  const excerpt = problem.diagnostics.find((each) => each.excerpt !== undefined)?.excerpt;
  const [why, setWhy] = useState(false);
  const denied = isDenied(problem);
  useEffect(() => {
    // Administration explains what was denied elsewhere.
    if (denied && link.value.screen !== "admin") lastDenial.value = denialOf(problem.message) ?? lastDenial.value;
  }, [problem]);
  return (
    <div class="problem" role="alert">
      <p class="sentence">
        <Plain text={problem.message} />
      </p>
      {excerpt === undefined ? null : (
        <pre tabIndex={0}>
          <Plain text={excerpt} />
        </pre>
      )}
      {problem.hint === null ? null : (
        <p>
          <Plain text={problem.hint} />
        </p>
      )}
      {isLostRace(problem) || (denied && why) ? <More problem={problem} /> : null}
      <p class="row wrap small">
        {denied ? (
          <button type="button" class="button small" aria-expanded={why} onClick={() => setWhy(!why)}>
            {text.problem.whyDenied}
          </button>
        ) : null}
        <a href={`../docs/errors#${encodeURIComponent(problem.code)}`} target="_blank" rel="noopener noreferrer" title={text.problem.why}>
          <code>{problem.code}</code>
        </a>
        {problem.requestId === null ? null : <span class="muted">{text.problem.request(problem.requestId)}</span>}
        <button type="button" class="button small" onClick={() => void copyText(reportOf(problem, config.version, link.value.screen))}>
          {text.problem.report}
        </button>
        {onRetry === undefined ? null : (
          <button type="button" class="button small" onClick={onRetry}>
            {text.problem.again}
          </button>
        )}
      </p>
    </div>
  );
}

/** The rest of a problem, once its code is loaded. */
function More({ problem }: { problem: Problem }) {
  const [View, setView] = useState<ComponentType<{ problem: Problem }> | null>(null);
  useEffect(() => void import("./ProblemMore").then((module) => setView(() => module.default)), []);
  return View === null ? null : <View problem={problem} />;
}

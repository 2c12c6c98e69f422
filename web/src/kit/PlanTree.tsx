/** A plan as a tree of operations: warnings first, then expected and actual rows, and times as bars. */
import type { ExplainOutput } from "../api/types";
import { plan as words } from "../text/plan";
import { Plain } from "./Plain";
import { planLines, planWarnings, type PlanLine, type PlanWarning } from "./planFacts";

export function PlanTree({ explained, measured }: { explained: ExplainOutput; measured: boolean }) {
  if (explained.plan === undefined) {
    return (
      <pre class="pad plan" tabIndex={0}>
        <Plain text={explained.text} />
      </pre>
    );
  }
  const [root, ...lines] = planLines(explained.plan);
  const warnings = planWarnings(lines);
  return (
    <div class="plan" tabIndex={0} role="region" aria-label={words.plan}>
      <Warnings warnings={warnings} />
      {root === undefined ? null : <Summary root={root} measured={measured} />}
      <Operations lines={lines} warnings={warnings} measured={measured} />
    </div>
  );
}

function Warnings({ warnings }: { warnings: readonly PlanWarning[] }) {
  if (warnings.length === 0) return null;
  return (
    <ul class="plan-warnings" aria-label={words.warnings}>
      {warnings.map((each, index) => (
        <li key={index}>
          <span aria-hidden="true">⚠</span>{" "}
          <Plain text={each.kind === "built" ? words.built(each.what) : words.misjudged(each.what, each.expected ?? 0, each.rows ?? 0)} />
          <span class="muted"> {words.step(each.line + 1)}</span>
        </li>
      ))}
    </ul>
  );
}

function Summary({ root, measured }: { root: PlanLine; measured: boolean }) {
  const { rows, ms, notes } = root.node;
  return (
    <div class="plan-summary muted small">
      {measured && rows !== undefined && ms !== undefined ? <span>{words.total(rows, ms)}</span> : null}
      {notes.map((note, index) => (
        <span key={index}>
          <Plain text={note} />
        </span>
      ))}
    </div>
  );
}

function Operations({ lines, warnings, measured }: { lines: readonly PlanLine[]; warnings: readonly PlanWarning[]; measured: boolean }) {
  const most = Math.max(1, ...lines.map(({ node }) => Math.max(node.rows ?? 0, node.expected ?? 0)));
  const slowest = Math.max(0.001, ...lines.map(({ node }) => node.ms ?? 0));
  const warned = new Set(warnings.map((each) => each.line));
  const { columns } = words;
  return (
    <table class="plain-table">
      <thead>
        <tr>
          <th scope="col">{columns.step}</th>
          <th scope="col" class="number">
            {columns.expected}
          </th>
          {measured ? (
            <>
              <th scope="col" class="number">
                {columns.rows}
              </th>
              <th scope="col" class="number">
                {columns.ms}
              </th>
            </>
          ) : null}
          <th scope="col">{columns.notes}</th>
        </tr>
      </thead>
      <tbody>
        {lines.map((line, index) => (
          <tr key={index} data-warned={warned.has(index) ? "" : undefined}>
            <td>
              <Step line={line} />
            </td>
            <td class="number muted">{line.node.expected === undefined ? "" : <Bar value={line.node.expected} most={most} shown={`~${Math.round(line.node.expected).toLocaleString()}`} tone="expected" />}</td>
            {measured ? (
              <>
                <td class="number">{line.node.rows === undefined ? "" : <Bar value={line.node.rows} most={most} shown={line.node.rows.toLocaleString()} tone="rows" />}</td>
                <td class="number">{line.node.ms === undefined ? "" : <Bar value={line.node.ms} most={slowest} shown={line.node.ms.toFixed(2)} tone="ms" />}</td>
              </>
            ) : null}
            <td class="muted small">
              <Plain text={line.node.notes.join(" · ")} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Step({ line }: { line: PlanLine }) {
  return (
    <span class="plan-step" style={{ paddingInlineStart: `${(line.depth - 1) * 18}px` }}>
      <strong>{line.node.op}</strong>{" "}
      <code>
        <Plain text={line.text} />
      </code>
      {line.condition === null ? null : (
        <span class="pushed" title={words.pushedHelp}>
          {words.pushed}{" "}
          <code>
            <Plain text={line.condition} />
          </code>
        </span>
      )}
    </span>
  );
}

function Bar({ value, most, shown, tone }: { value: number; most: number; shown: string; tone: string }) {
  return (
    <span class="bar-cell">
      <span class={`time-bar ${tone}`} aria-hidden="true" style={{ inlineSize: `${Math.max(1, (value / most) * 56)}px` }} />
      {shown}
    </span>
  );
}

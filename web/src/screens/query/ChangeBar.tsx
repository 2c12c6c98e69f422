/** The bar of a change: its branch, the rows that it would touch by a dry run, and the message of its commit. */
import { useEffect, useState } from "preact/hooks";

import { problemOf, type Problem } from "../../api/problem";
import type { ChangeOutput } from "../../api/types";
import { Plain } from "../../kit/Plain";
import { may, place, source, written } from "../../state/context";
import { text } from "../../text/en";
import type { Workspace } from "./workspace";

const PAUSE_MS = 400;
const SIGNS = { insert: "+", update: "~", delete: "−" } as const;

type Dry = { readonly change: ChangeOutput } | { readonly problem: Problem } | null;

export function ChangeBar({ space }: { space: Workspace }) {
  const here = place.value;
  const dry = useDryRun(space);
  if (here === null) return null;
  const reason = here.branch === null ? text.query.pinnedChange : may("change") ? null : text.query.notAllowed;
  return (
    <div class="change-bar row wrap" role="status">
      <strong>{text.query.changeBar(here.ref)}</strong>
      {reason === null ? <Touched dry={dry} /> : <span>{reason}</span>}
      {reason === null ? (
        <input class="input grow" type="text" aria-label={text.query.message} placeholder={text.query.message} value={space.message.value} onInput={(event) => (space.message.value = event.currentTarget.value)} />
      ) : null}
    </div>
  );
}

/** The rows by type and operation; the sign says what the colour says. */
function Touched({ dry }: { dry: Dry }) {
  if (dry === null) return <span class="muted">{text.query.dryWaits}</span>;
  if ("problem" in dry) {
    return (
      <span>
        <Plain text={dry.problem.message} />
      </span>
    );
  }
  const tables = Object.entries(dry.change.tables ?? {});
  const parts = tables.flatMap(([table, counts]) => (["insert", "update", "delete"] as const).flatMap((op) => (counts[op] > 0 ? [{ table, op, count: counts[op] }] : [])));
  if (parts.length === 0) return <span>{text.query.dryNothing}</span>;
  return (
    <span class="row wrap touched">
      <span>{text.query.dryTouches}</span>
      {parts.map(({ table, op, count }) => (
        <span key={`${table} ${op}`} class={`badge ${{ insert: "good", update: "warn", delete: "bad" }[op]}`}>
          {`${SIGNS[op]}${count.toLocaleString()} ${table.split(":").at(-1) ?? ""}`}
        </span>
      ))}
    </span>
  );
}

/** Runs the change without writing, after a pause in typing. */
function useDryRun(space: Workspace): Dry {
  const [dry, setDry] = useState<Dry>(null);
  const here = place.value;
  const ready = here !== null && here.branch !== null && may("change") && space.canRun;
  const key = ready ? JSON.stringify([here.commit, space.request(), written.value]) : null;
  useEffect(() => {
    setDry(null);
    if (key === null || here === null) return undefined;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      source.dryRun(here, space.request(), abort.signal).then(
        (change) => setDry({ change }),
        (error: unknown) => {
          const problem = problemOf(error);
          if (problem !== null && !abort.signal.aborted) setDry({ problem });
        },
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key]);
  return dry;
}

/** The filters of the history. They are parameters of the link; the server applies them. */
import { useEffect, useState } from "preact/hooks";

import { useLoad } from "../../kit/load";
import { plainText } from "../../kit/Plain";
import { EVERY_BRANCH, type CommitFilter } from "../../source/history";
import { place, source } from "../../state/context";
import { link, replace } from "../../state/location";
import type { Place } from "../../source/source";
import { historyText as text } from "../../text/history";

const PAUSE_MS = 300;
const DAY_MS = 86_400_000;
const NAMES = ["branch", "actor", "type", "text", "since", "until"] as const;

/** Returns the conditions of a link. Days are those of the browser; the last one is included. */
export function filterOf(params: Readonly<Record<string, string>>): CommitFilter {
  return {
    branch: params["branch"] ?? EVERY_BRANCH,
    actor: params["actor"],
    type: params["type"],
    text: params["text"],
    since: dayStart(params["since"], 0),
    until: dayStart(params["until"], 1),
  };
}

function dayStart(day: string | undefined, plus: number): string | undefined {
  const at = day === undefined ? Number.NaN : new Date(`${day}T00:00:00`).getTime();
  return Number.isNaN(at) ? undefined : new Date(at + plus * DAY_MS).toISOString();
}

/** True if the filter selects single commits, so that the list has gaps. */
export const hasConditions = (filter: CommitFilter): boolean =>
  [filter.actor, filter.type, filter.text, filter.since, filter.until].some((each) => each !== undefined);

function change(name: string, value: string): void {
  const { commit: _, ...params } = link.value.params;
  replace({ params: { ...params, [name]: value } });
}

export function Filters() {
  const { graph, params } = link.value;
  const here = place.value;
  const branches = useLoad(here === null ? null : `${graph} ${here.commit}`, (signal) => source.branches(graph, signal)).value ?? [];
  const catalog = useLoad(here === null ? null : `${graph} ${here.commit}`, (signal) => source.catalog(here as Place, signal)).value;
  const types = [...(catalog?.nodes ?? []), ...(catalog?.edges ?? [])].map((type) => type.name);
  const used = NAMES.some((name) => params[name] !== undefined);
  return (
    <form class="history-filters" role="search" aria-label={text.filters} onSubmit={(event) => event.preventDefault()}>
      <Choice name="branch" label={text.branch} all={text.everyBranch} options={branches} />
      <Choice name="type" label={text.type} all={text.anyType} options={types} />
      <Typed name="actor" label={text.actor} />
      <Typed name="text" label={text.text} />
      <Day name="since" label={text.since} />
      <Day name="until" label={text.until} />
      {used ? (
        <button type="button" class="button small" onClick={() => replace({ params: {} })}>
          {text.clear}
        </button>
      ) : null}
    </form>
  );
}

function Choice({ name, label, all, options }: { name: string; label: string; all: string; options: readonly string[] }) {
  const value = link.value.params[name] ?? "";
  const listed = value === "" || options.includes(value) ? options : [...options, value];
  return (
    <label class="field">
      <span class="label">{label}</span>
      <select class="select" value={value} onChange={(event) => change(name, event.currentTarget.value)}>
        <option value="">{all}</option>
        {listed.map((each) => (
          <option key={each} value={each}>
            {plainText(each)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A text that takes effect when typing pauses. */
function Typed({ name, label }: { name: string; label: string }) {
  const given = link.value.params[name] ?? "";
  const [value, setValue] = useState(given);
  useEffect(() => setValue(given), [given]);
  useEffect(() => {
    if (value.trim() === given) return undefined;
    const timer = setTimeout(() => change(name, value.trim()), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return (
    <label class="field">
      <span class="label">{label}</span>
      <input class="input" type="search" autoComplete="off" spellcheck={false} value={value} onInput={(event) => setValue(event.currentTarget.value)} />
    </label>
  );
}

function Day({ name, label }: { name: string; label: string }) {
  return (
    <label class="field">
      <span class="label">{label}</span>
      <input class="input" type="date" value={link.value.params[name] ?? ""} onChange={(event) => change(name, event.currentTarget.value)} />
    </label>
  );
}

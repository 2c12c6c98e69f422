/** The ref in the bar: a branch, a tag or a pinned commit, and the point of time that it shows. */
import { useState } from "preact/hooks";

import { Problem, problemOf } from "../api/problem";
import { announce } from "../kit/announce";
import { FormDialog } from "../kit/FormDialog";
import { Icon } from "../kit/Icon";
import { useLoad } from "../kit/load";
import { Menu, type MenuItem } from "../kit/Menu";
import { Plain } from "../kit/Plain";
import { shortTime } from "../kit/Time";
import { place, source } from "../state/context";
import { isPinned, MAIN, tagRef } from "../state/link";
import { go, href, lastBranch, link } from "../state/location";
import { text } from "../text/en";

const HOUR_MS = 3_600_000;
const AGES_MS = [HOUR_MS, 24 * HOUR_MS, 7 * 24 * HOUR_MS];

interface Refs {
  readonly branches: readonly string[];
  readonly tags: readonly string[];
}

export function RefMenu() {
  const { graph, ref } = link.value;
  const [refs, setRefs] = useState<Refs>({ branches: [MAIN], tags: [] });
  const load = async () => {
    const [branches, tags] = await Promise.all([source.branches(graph), source.history.tags(graph)]);
    setRefs({ branches, tags: tags.map((tag) => tag.name) });
  };
  const item = (group: string, target: (name: string) => string) => (name: string, index: number): MenuItem => ({
    label: <Plain text={name} />,
    checked: target(name) === ref,
    href: href({ ref: target(name) }),
    ...(index === 0 ? { group } : {}),
  });
  const items = [...refs.branches.map(item(text.menus.branches, (name) => name)), ...refs.tags.map(item(text.menus.tags, tagRef))];
  const commit = place.value?.commit;
  if (commit !== undefined && ref !== `@${commit}`) {
    items.push({ label: text.pin, hint: commit.slice(-6), href: href({ ref: `@${commit}` }), group: text.menus.commit });
  }
  return (
    <Menu
      label={`${text.menus.ref} ${ref}`}
      button={
        <>
          <Icon name={isPinned(ref) ? "pin" : "branch"} />
          <span class="cut">
            <Plain text={isPinned(ref) ? ref.slice(1) : ref} />
          </span>
        </>
      }
      items={items}
      onOpen={() => void load().catch(() => undefined)}
    />
  );
}

/** Goes to the newest commit of the branch before a time. */
async function goTo(time: Date): Promise<void> {
  const { graph } = link.value;
  const branch = lastBranch();
  const { commits } = await source.history.list(graph, { branch, until: time.toISOString() }, 1);
  const commit = commits[0];
  if (commit === undefined) throw new Problem(404, { error: text.time.none(branch, shortTime(time.getTime() * 1000)), code: "no_commit" });
  go({ ref: `@${commit.graph_commit_id}` });
}

export function TimeMenu() {
  const { graph, ref } = link.value;
  const [choosing, setChoosing] = useState(false);
  const commit = isPinned(ref) ? (place.value?.commit ?? null) : null;
  const shown = useLoad(commit === null ? null : `${graph} ${commit}`, (signal) => source.history.commit(graph, commit ?? "", signal)).value;
  const label = !isPinned(ref) ? text.time.now : shown === undefined ? "…" : shortTime(shown.created_at);
  const jump = (ms: number) => goTo(new Date(Date.now() - ms)).catch((error: unknown) => announce(problemOf(error)?.message ?? ""));
  return (
    <>
      <Menu
        label={`${text.time.label} ${label}`}
        button={
          <>
            <Icon name="clock" />
            <span class="only-wide">{label}</span>
          </>
        }
        items={[
          { label: text.time.nowOf(lastBranch()), checked: !isPinned(ref), href: href({ ref: lastBranch() }) },
          ...AGES_MS.map((ms, index) => ({ label: text.time.ages[index] ?? "", run: () => void jump(ms) })),
          { label: text.time.choose, run: () => setChoosing(true) },
        ]}
      />
      {choosing ? <TimeDialog onClose={() => setChoosing(false)} /> : null}
    </>
  );
}

function TimeDialog({ onClose }: { onClose(): void }) {
  const [typed, setTyped] = useState("");
  const time = new Date(typed);
  return (
    <FormDialog title={text.time.title} submit={text.time.show} ready={!Number.isNaN(time.getTime())} onClose={onClose} run={() => goTo(time)}>
      <p class="muted">{text.time.explain(lastBranch())}</p>
      <label class="field">
        <span class="label">{text.time.field}</span>
        <input class="input" type="datetime-local" step={1} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      </label>
    </FormDialog>
  );
}

/** The palette (Ctrl+K): screens, branches, types and stored queries by name. */
import { useEffect, useId, useState } from "preact/hooks";

import { Dialog } from "../kit/Dialog";
import { Plain } from "../kit/Plain";
import { findScreen, SCREENS } from "../screens/registry";
import { place, source } from "../state/context";
import { go, link, type Change } from "../state/location";
import { text } from "../text/en";
import { paletteOpen } from "./keys";

interface Goal {
  kind: string;
  name: string;
  change: Change;
}

const SHOWN_MAX = 40;

export function Palette() {
  const [goals, setGoals] = useState<readonly Goal[]>(screenGoals);
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const close = () => (paletteOpen.value = false);
  useEffect(() => {
    const abort = new AbortController();
    void otherGoals(abort.signal).then((others) => setGoals([...screenGoals(), ...others]), () => undefined);
    return () => abort.abort();
  }, []);
  const words = typed.toLowerCase();
  const found = goals.filter((goal) => goal.name.toLowerCase().includes(words)).slice(0, SHOWN_MAX);
  const choose = (goal: Goal | undefined) => {
    if (goal === undefined) return;
    close();
    go(goal.change);
  };
  return (
    <Dialog title={text.palette.label} onClose={close} class="palette" quiet>
      <div>
        <input
          class="input"
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls={id}
          aria-activedescendant={found.length > 0 ? `${id}-${at}` : undefined}
          aria-label={text.palette.label}
          placeholder={text.palette.label}
          value={typed}
          onInput={(event) => (setTyped(event.currentTarget.value), setAt(0))}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1));
            else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
            else if (event.key === "Enter") choose(found[at]);
            else return;
            event.preventDefault();
          }}
        />
        <div class="popup" role="listbox" id={id} aria-label={text.palette.label}>
          {found.length === 0 ? <p class="empty">{text.palette.none}</p> : null}
          {found.map((goal, index) => (
            <div role="option" id={`${id}-${index}`} key={`${goal.kind} ${goal.name}`} aria-selected={index === at} onClick={() => choose(goal)}>
              <span class="grow cut">
                <Plain text={goal.name} />
              </span>
              <span class="muted small">{goal.kind}</span>
            </div>
          ))}
        </div>
      </div>
    </Dialog>
  );
}

function screenGoals(): Goal[] {
  return SCREENS.filter((screen) => screen.listed).map((screen) => ({
    kind: text.palette.screen,
    name: screen.title,
    change: { screen: screen.name, path: [], params: {} },
  }));
}

async function otherGoals(signal: AbortSignal): Promise<Goal[]> {
  const here = place.value;
  if (here === null) return [];
  const [branches, catalog, queries] = await Promise.all([
    source.branches(link.value.graph, signal),
    source.catalog(here, signal),
    source.storedQueries(here, signal),
  ]);
  const goals: Goal[] = branches.map((name) => ({ kind: text.palette.branch, name, change: { ref: name } }));
  if (findScreen("query") !== undefined) {
    goals.push(
      ...catalog.nodes.map(({ name }) => ({ kind: text.palette.type, name, change: { screen: "query", path: [], params: { type: name } } })),
      ...queries.map(({ name }) => ({ kind: text.palette.query, name, change: { screen: "query", path: [], params: { name } } })),
    );
  }
  return goals;
}

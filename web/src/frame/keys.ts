/** The keys of the whole page. Keys that a field or the editor uses are left to it. */
import { signal } from "@preact/signals";

import { SCREENS } from "../screens/registry";
import { go } from "../state/location";

export const paletteOpen = signal(false);
export const helpOpen = signal(false);

const PAUSE_MS = 1200;

/** Follows the keys; returns the function that stops it. */
export function followKeys(): () => void {
  let waitsUntil = 0;
  const onKey = (event: KeyboardEvent) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      paletteOpen.value = true;
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isField(event.target)) return;
    if (document.querySelector("dialog[open]") !== null) return;
    const screen = Date.now() < waitsUntil ? SCREENS.find((each) => each.key === event.key) : undefined;
    waitsUntil = event.key === "g" ? Date.now() + PAUSE_MS : 0;
    if (screen !== undefined) go({ screen: screen.name, path: [], params: {} });
    else if (event.key === "/") document.getElementById("search")?.focus();
    else if (event.key === "?") helpOpen.value = true;
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}

function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(input|textarea|select)$/i.test(target.tagName));
}

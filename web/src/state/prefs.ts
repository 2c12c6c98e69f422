/** Preferences of this browser: the theme, and lists such as the query history. Nothing here leaves the browser. */
import { computed, effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

export function stored<T>(key: string, fallback: T): T {
  try {
    const text = localStorage.getItem(`omnigraph.${key}`);
    return text === null ? fallback : (JSON.parse(text) as T);
  } catch {
    return fallback;
  }
}

export function store(key: string, value: unknown): void {
  try {
    localStorage.setItem(`omnigraph.${key}`, JSON.stringify(value));
  } catch {
    // A full or forbidden storage loses a preference, nothing else.
  }
}

const themes: readonly Theme[] = ["system", "light", "dark"];
const first = stored<Theme>("theme", "system");
export const theme = signal<Theme>(themes.includes(first) ? first : "system");
const system = window.matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(system.matches);
system.addEventListener("change", (event) => (systemDark.value = event.matches));
/** The theme in effect. */
export const shownTheme = computed<"light" | "dark">(() => (theme.value === "system" ? (systemDark.value ? "dark" : "light") : theme.value));

/** Gives the page the theme in effect. */
export function followTheme(): void {
  effect(() => {
    document.documentElement.dataset["theme"] = shownTheme.value;
  });
}

export function chooseTheme(value: Theme): void {
  theme.value = value;
  store("theme", value);
}

/**
 * The screens of the page. A screen is loaded when it is first shown; no screen imports another one.
 *
 * To add a screen: a folder below `screens/` whose module has a default export, one line here, its words in
 * `text/en.ts`, and its browser test in `tests/ui`.
 */
import type { ComponentType } from "preact";

export interface Screen {
  /** The name in links. */
  readonly name: string;
  readonly title: string;
  /** The letter after `g`. */
  readonly key?: string;
  /** True if the screen needs no ref, so that it is shown even if the ref of the link cannot be read. */
  readonly placeless?: boolean;
  /** True if the screen is in the navigation. */
  readonly listed: boolean;
  load(): Promise<{ default: ComponentType }>;
}

export const SCREENS: readonly Screen[] = [
  { name: "home", title: "Home", key: "h", listed: true, load: () => import("./home/Home") },
  { name: "search", title: "Search", key: "f", listed: true, load: () => import("./search/Search") },
  { name: "query", title: "Query", key: "q", listed: true, load: () => import("./query/Query") },
  { name: "map", title: "Map", key: "m", listed: true, load: () => import("./map/Map") },
  { name: "schema", title: "Schema", key: "s", listed: true, load: () => import("./schema/Schema") },
  { name: "history", title: "History", key: "l", listed: true, load: () => import("./history/History") },
  { name: "changes", title: "Changes", key: "c", listed: true, load: () => import("./changes/Changes") },
  { name: "proposals", title: "Proposals", key: "p", listed: true, load: () => import("./proposals/Proposals") },
  { name: "entity", title: "Entity", listed: false, load: () => import("./entity/Entity") },
  { name: "diff", title: "Compare", listed: false, load: () => import("./diff/Diff") },
  { name: "merge", title: "Merge", listed: false, load: () => import("./merge/Merge") },
  { name: "admin", title: "Admin", key: "a", listed: true, placeless: true, load: () => import("./admin/Admin") },
];

export const findScreen = (name: string): Screen | undefined => SCREENS.find((screen) => screen.name === name);

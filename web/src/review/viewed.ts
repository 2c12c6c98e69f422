/** "Viewed" marks: kept in this browser for each pair of commits, the newest pairs only. */
import { useState } from "preact/hooks";

import { store, stored } from "../state/prefs";

const PAIRS_MAX = 30;
const ROWS_MAX = 5000;
const KEY = "viewed";

type Marks = Readonly<Record<string, readonly string[]>>;

export interface Viewed {
  readonly rows: ReadonlySet<string>;
  set(key: string, viewed: boolean): void;
}

export function useViewed(pair: string): Viewed {
  const [state, setState] = useState({ pair: "", rows: new Set<string>() as ReadonlySet<string> });
  const rows = state.pair === pair ? state.rows : new Set(stored<Marks>(KEY, {})[pair] ?? []);
  if (state.pair !== pair) setState({ pair, rows });
  return {
    rows,
    set(key, viewed) {
      const next = new Set(rows);
      if (viewed) next.add(key);
      else next.delete(key);
      setState({ pair, rows: next });
      const { [pair]: _, ...others } = stored<Marks>(KEY, {});
      const kept = Object.entries(others).slice(-PAIRS_MAX + 1);
      store(KEY, Object.fromEntries([...kept, [pair, [...next].slice(-ROWS_MAX)]]));
    },
  };
}

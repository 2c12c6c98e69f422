/** Numbers of changed rows by type, nodes before edges. */
import type { OpCountOutput } from "../api/reviewTypes";
import { Counts } from "../review/Counts";

export function TypeCounts({ of, label }: { of: Readonly<Record<string, OpCountOutput>>; label: string }) {
  const tables = changedTables(of).sort();
  return (
    <ul class="type-counts" aria-label={label}>
      {[...tables.filter((key) => key.startsWith("node:")), ...tables.filter((key) => !key.startsWith("node:"))].map((key) => (
        <li key={key}>
          <span class="cut">{key.slice(key.indexOf(":") + 1)}</span>
          <Counts counts={of[key] as OpCountOutput} />
        </li>
      ))}
    </ul>
  );
}

/** Returns the keys of the tables with changes. */
export function changedTables(of: Readonly<Record<string, OpCountOutput>>): string[] {
  return Object.keys(of).filter((key) => {
    const counts = of[key];
    return counts !== undefined && counts.insert + counts.update + counts.delete > 0;
  });
}

/** A menu of the branches of a graph; a pinned ref is shown as it is. */
import { useState } from "preact/hooks";

import { Icon } from "../kit/Icon";
import { Menu } from "../kit/Menu";
import { Plain } from "../kit/Plain";
import { source } from "../state/context";
import { isPinned } from "../state/link";

/** Returns the words of a ref: a branch, or the end of a commit id. */
export function refName(ref: string): string {
  if (!isPinned(ref)) return ref;
  return /^@[0-9A-HJKMNP-TV-Z]{26}$/.test(ref) ? `@${ref.slice(-6)}` : ref.slice(1);
}

export function RefPicker({ graph, label, value, onChoose }: { graph: string; label: string; value: string; onChoose(ref: string): void }) {
  const [branches, setBranches] = useState<readonly string[]>([]);
  const items = [...new Set([...branches, ...(isPinned(value) ? [] : [value])])].map((branch) => ({
    label: <Plain text={branch} />,
    checked: branch === value,
    run: () => onChoose(branch),
  }));
  return (
    <Menu
      label={`${label} ${refName(value)}`}
      class="button ref-picker"
      button={
        <>
          <Icon name={isPinned(value) ? "pin" : "branch"} />
          <span class="cut">
            <Plain text={refName(value)} />
          </span>
        </>
      }
      items={items}
      onOpen={() => void source.branches(graph).then(setBranches, () => undefined)}
    />
  );
}

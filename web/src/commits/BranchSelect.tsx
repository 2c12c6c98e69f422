/** Chooses a branch of the graph. */
import { useLoad } from "../kit/load";
import { plainText } from "../kit/Plain";
import { source } from "../state/context";
import { commitText } from "../text/commits";

interface Props {
  graph: string;
  value: string;
  onValue(branch: string): void;
  label?: string;
}

export function BranchSelect({ graph, value, onValue, label = commitText.branch }: Props) {
  const branches = useLoad(graph, (signal) => source.branches(graph, signal)).value ?? [value];
  return (
    <label class="field">
      <span class="label">{label}</span>
      <select class="select" value={value} onChange={(event) => onValue(event.currentTarget.value)}>
        {branches.map((branch) => (
          <option key={branch} value={branch}>
            {plainText(branch)}
          </option>
        ))}
      </select>
    </label>
  );
}

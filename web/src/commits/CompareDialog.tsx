/** Chooses the other side of a comparison: a branch or a tag of the list, or a point that is typed. */
import { useState } from "preact/hooks";

import { FormDialog, Field } from "../kit/FormDialog";
import { useLoad } from "../kit/load";
import { plainText } from "../kit/Plain";
import { source } from "../state/context";
import { go, link } from "../state/location";
import { historyText } from "../text/history";

export function CompareDialog({ with: ref, onClose }: { with: string; onClose(): void }) {
  const { graph } = link.value;
  const words = historyText.compare;
  const [other, setOther] = useState("");
  const known = useLoad(graph, async (signal) => {
    const [branches, tags] = await Promise.all([source.branches(graph, signal), source.history.tags(graph, signal)]);
    return { branches, tags: tags.map((tag) => tag.name) };
  }).value;
  const choose = (value: string) => {
    onClose();
    go({ screen: "diff", path: [], params: { from: value, to: ref } });
  };
  const typed = other.trim();
  return (
    <FormDialog
      title={words.title}
      submit={words.go}
      ready={typed !== ""}
      onClose={onClose}
      run={async () => choose(known?.branches.includes(typed) === true || typed.startsWith("@") ? typed : `@${typed}`)}
    >
      <p class="muted">{words.explain(ref.slice(1))}</p>
      <div class="row wrap">
        {(known?.branches ?? []).map((name) => (
          <button type="button" class="chip" key={name} onClick={() => choose(name)}>
            {plainText(name)}
          </button>
        ))}
        {(known?.tags ?? []).map((name) => (
          <button type="button" class="chip" key={`tag ${name}`} onClick={() => choose(`@${name}`)}>
            {plainText(name)}
          </button>
        ))}
      </div>
      <Field label={words.other} value={other} onValue={setOther} />
    </FormDialog>
  );
}

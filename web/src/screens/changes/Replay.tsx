/** Where the feed begins: now, at the last ten commits, at the first one, or after a commit. */
import { useState } from "preact/hooks";

import { Field, FormDialog } from "../../kit/FormDialog";
import { Menu } from "../../kit/Menu";
import type { Place } from "../../source/source";
import { source } from "../../state/context";
import { feedText } from "../../text/changes";

const LAST = 10;
const READ = 60;

interface Props {
  here: Place;
  branch: string;
  start: string;
  onStart(start: string): void;
}

/** Returns the start that gives the last commits of a branch along first parents. */
async function lastCommits(here: Place, branch: string): Promise<string> {
  const { commits } = await source.history.list(here.graph, { branch }, READ);
  const parents = new Map(commits.map((commit) => [commit.graph_commit_id, commit.parent_commit_id]));
  let id: string | null | undefined = commits[0]?.graph_commit_id;
  for (let step = 0; step < LAST && id !== null && id !== undefined; step += 1) id = parents.get(id);
  return id === null || id === undefined ? "beginning" : `after:${id}`;
}

export function Replay({ here, branch, start, onStart }: Props) {
  const [asks, setAsks] = useState(false);
  const [id, setId] = useState("");
  const { replays, after } = feedText;
  return (
    <>
      <Menu
        end
        class="button"
        label={feedText.replay}
        button={feedText.replay}
        items={[
          { label: replays.now, checked: start === "now", run: () => onStart("now") },
          { label: replays.last, run: () => void lastCommits(here, branch).then(onStart, () => onStart("beginning")) },
          { label: replays.beginning, checked: start === "beginning", run: () => onStart("beginning") },
          { label: replays.after, run: () => setAsks(true) },
        ]}
      />
      {asks ? (
        <FormDialog title={after.title} submit={after.go} ready={id.trim() !== ""} onClose={() => setAsks(false)} run={async () => onStart(`after:${id.trim()}`)}>
          <Field label={after.label} value={id} onValue={setId} help={after.help} mono />
        </FormDialog>
      ) : null}
    </>
  );
}

/** The bar of the workspace: what runs, and what can be done with the text. */
import { useState } from "preact/hooks";

import { problemOf, type Problem } from "../../api/problem";
import { announce, copyText } from "../../kit/announce";
import { Dialog } from "../../kit/Dialog";
import { saveFile } from "../../kit/files";
import { Icon } from "../../kit/Icon";
import { Menu } from "../../kit/Menu";
import { ProblemBox } from "../../kit/ProblemBox";
import { may, place, source, written } from "../../state/context";
import { pointOf } from "../../state/link";
import { href, link, replace } from "../../state/location";
import { text } from "../../text/en";
import { asCommand, asCurl, asPython, type CopyTarget } from "./copy";
import { writeLink } from "./Query";
import type { Workspace } from "./workspace";

const NAME = /^[A-Za-z][A-Za-z0-9_]*$/;

export function Actions({ space, run }: { space: Workspace; run(): void }) {
  const [saving, setSaving] = useState(false);
  const running = space.running.value === "read" || space.running.value === "change";
  const here = place.value;
  const plan = (measured: boolean) => {
    if (here === null) return;
    void space.explain(here, measured);
    replace({ params: { ...link.value.params, view: "plan" } });
  };
  const copyAs = (make: (request: ReturnType<Workspace["request"]>, target: CopyTarget) => string) => void copyText(make(space.request(), copyTarget(space)));
  return (
    <header class="wrap">
      <div class="row wrap">
        <strong class="cut">{space.storedName.value ?? text.query.draft}</strong>
        {space.heads.value.length > 1 ? (
          <select class="select" aria-label={text.query.which} value={space.head.value?.name} onChange={(event) => (space.chosen.value = event.currentTarget.value)}>
            {space.heads.value.map((head) => (
              <option key={head.name} value={head.name}>
                {head.name}
              </option>
            ))}
          </select>
        ) : null}
      </div>
      <div class="row wrap">
        {running ? (
          <button type="button" class="button danger" onClick={() => space.stop()}>
            <Icon name="stop" />
            {text.query.stop}
          </button>
        ) : (
          <button type="button" class="button primary" disabled={!space.canRun} title="Ctrl Enter" onClick={run}>
            <Icon name="play" />
            {space.isChange.value ? text.query.apply : text.query.run}
          </button>
        )}
        <button type="button" class="button" disabled={!space.canRun} onClick={() => plan(false)}>
          {text.query.explain}
        </button>
        <button type="button" class="button" disabled={!space.canRun || space.isChange.value} onClick={() => plan(true)}>
          {text.query.profile}
        </button>
        <button type="button" class="button" disabled={space.text.value.trim() === ""} onClick={() => void formatText(space)}>
          {text.query.format}
        </button>
        <button type="button" class="button" disabled={space.text.value.trim() === ""} onClick={() => setSaving(true)}>
          {text.query.save}
        </button>
        <Menu
          end
          class="button"
          label={text.query.copyAs}
          button={text.query.copyAs}
          items={[
            { label: text.query.copyPython, run: () => copyAs(asPython) },
            { label: text.query.copyCurl, run: () => copyAs(asCurl) },
            { label: text.query.copyCommand, run: () => copyAs(asCommand) },
          ]}
        />
        <a class="button" href={href({ screen: "query", path: [], params: {} })}>
          {text.query.newQuery}
        </a>
      </div>
      {saving ? <SaveDialog space={space} onClose={() => setSaving(false)} /> : null}
    </header>
  );
}

function copyTarget(space: Workspace): CopyTarget {
  const { graph, ref } = link.value;
  return { address: source.address, graph, path: source.routePath(graph, space.isChange.value ? "mutate" : "query"), ref: pointOf(ref), change: space.isChange.value };
}

async function formatText(space: Workspace): Promise<void> {
  const here = place.value;
  if (here === null) return;
  try {
    space.text.value = (await source.format(here, space.text.value, "gq")).text;
  } catch (error) {
    const problem = problemOf(error);
    if (problem !== null) announce(problem.message);
  }
}

/** Copies the link of the workspace; opening it runs the query. */
export async function copyLink(space: Workspace): Promise<void> {
  if (!(await writeLink(space))) {
    announce(text.query.linkTooLong);
    return;
  }
  const params = { ...link.value.params, run: "1" };
  await copyText(new URL(href({ params }), location.href).href);
}

/** Returns the text that is stored under a name: a text without a head gets one. */
export function storedText(source: string, name: string, description: string): string {
  const note = description === "" ? "" : ` @description(${JSON.stringify(description)})`;
  if (!/^\s*(\/\/[^\n]*\n|\s)*query\b/.test(source)) return `query ${name}()${note} {\n${source.replace(/^/gm, "    ")}\n}\n`;
  const renamed = source.replace(/\bquery\s+\w+/, `query ${name}`);
  return note === "" || renamed.includes("@description(") ? renamed : renamed.replace(/\bquery\s+\w+\s*\((?:[^()]|\([^()]*\))*\)/, (head) => head + note);
}

function SaveDialog({ space, onClose }: { space: Workspace; onClose(): void }) {
  const [name, setName] = useState(space.storedName.value ?? space.head.value?.name ?? "");
  const [description, setDescription] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const here = place.value;
  const allowed = here !== null && here.branch !== null && may("change");
  const save = async () => {
    if (here === null) return;
    try {
      const stored = storedText(space.text.value, name, description);
      await source.storeQuery(here, name, stored, "");
      space.text.value = stored;
      space.storedName.value = name;
      written.value += 1;
      announce(text.query.saved(name));
      onClose();
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  return (
    <Dialog title={text.query.saveTitle} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <label class="field">
          <span class="label">{text.query.saveName}</span>
          <input class="input" value={name} aria-invalid={name !== "" && !NAME.test(name)} onInput={(event) => setName(event.currentTarget.value)} />
          <span class="help">{text.query.saveNameHelp}</span>
        </label>
        <label class="field">
          <span class="label">{text.query.saveDescription}</span>
          <input class="input" value={description} onInput={(event) => setDescription(event.currentTarget.value)} />
        </label>
        {here === null ? null : <p class="muted">{allowed ? text.query.saveBranch(here.ref) : text.query.notAllowed}</p>}
        {problem === null ? null : <ProblemBox problem={problem} />}
        <div class="actions">
          <button type="button" class="button" onClick={() => saveFile(new Blob([storedText(space.text.value, name || "query", description)]), `${name || "query"}.gq`)}>
            {text.query.download}
          </button>
          <button type="button" class="button" onClick={onClose}>
            {text.cancel}
          </button>
          <button type="submit" class="button primary" disabled={!NAME.test(name) || !allowed}>
            {text.query.saveButton}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

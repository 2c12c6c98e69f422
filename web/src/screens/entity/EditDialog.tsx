/** Edits the properties of a node or edge: a commit on this branch, or on a new one. */
import { useState } from "preact/hooks";

import { problemOf, type Problem } from "../../api/problem";
import type { CatalogOutput, EntityOutput, PropertyOutput } from "../../api/types";
import { announce } from "../../kit/announce";
import { Dialog } from "../../kit/Dialog";
import { faultText, Field } from "../../kit/Field";
import { fieldText, valueOf } from "../../kit/fields";
import { ProblemBox } from "../../kit/ProblemBox";
import type { Place } from "../../source/source";
import { may, source, written } from "../../state/context";
import { go } from "../../state/location";
import { text } from "../../text/en";
import { entityText as words } from "../../text/entity";

interface Props {
  here: Place;
  entity: EntityOutput;
  catalog: CatalogOutput;
  label: string;
  onClose(): void;
}

/** Returns the properties that a form can change. */
export function editable(entity: EntityOutput, catalog: CatalogOutput): PropertyOutput[] {
  const declared = [...catalog.nodes, ...catalog.edges].find((each) => each.name === entity.type);
  return (declared?.properties ?? []).filter((each) => !declared?.key.includes(each.name) && !/^\[?(Vector|Blob)/.test(each.type));
}

/** Returns the record that a load merges: the key or id of the entity and the changed properties. */
export function recordOf(entity: EntityOutput, catalog: CatalogOutput, changed: Readonly<Record<string, unknown>>): object {
  const node = catalog.nodes.find((each) => each.name === entity.type);
  if (node === undefined) return { edge: entity.type, from: entity.data["src"], to: entity.data["dst"], data: { id: entity.id, ...changed } };
  const key = node.key.length > 0 ? Object.fromEntries(node.key.map((name) => [name, entity.data[name]])) : { id: entity.id };
  return { type: entity.type, data: { ...key, ...changed } };
}

/** Returns a name for a branch of an edit. */
const branchName = (entity: EntityOutput): string => `edit/${entity.type}-${entity.id}`.toLowerCase().replace(/[^a-z0-9/_-]+/g, "-").slice(0, 60);

export function EditDialog({ here, entity, catalog, label, onClose }: Props) {
  const properties = editable(entity, catalog);
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const allowed = here.branch !== null && may("change");
  const [onNew, setOnNew] = useState(!allowed);
  const [branch, setBranch] = useState(branchName(entity));
  const [message, setMessage] = useState(words.messageOf(entity.type, entity.id));
  const [problem, setProblem] = useState<Problem | null>(null);
  const [saving, setSaving] = useState(false);

  const typed = properties.flatMap(({ name, type }) => {
    const given = texts[name];
    return given === undefined || given === fieldText(entity.data[name]) ? [] : [{ name, made: valueOf(type, given) }];
  });
  const faults = Object.fromEntries(typed.flatMap(({ name, made }) => ("fault" in made ? [[name, faultText(made.fault)]] : [])));
  const changed = Object.fromEntries(typed.flatMap(({ name, made }) => ("value" in made ? [[name, made.value]] : [])));
  const count = Object.keys(changed).length;
  const ready = count > 0 && Object.keys(faults).length === 0 && (!onNew || branch !== "") && !saving;
  const save = async () => {
    setSaving(true);
    try {
      const target = onNew ? { branch, from: here.branch ?? undefined } : { branch: here.branch as string };
      await source.mergeRecord(here, recordOf(entity, catalog, changed), target, message);
      announce(words.saved(target.branch));
      written.value += 1;
      onClose();
      if (onNew) go({ ref: branch });
    } catch (error) {
      setProblem(problemOf(error));
      setSaving(false);
    }
  };
  return (
    <Dialog title={words.editTitle(label)} onClose={onClose} wide>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (ready) void save();
        }}
      >
        <div class="edit-fields">
          {properties.length === 0 ? <p class="muted">{words.nothing}</p> : null}
          {properties.map(({ name, type }) => (
            <Field key={name} name={name} type={type} value={texts[name] ?? fieldText(entity.data[name])} fault={faults[name]} strict onInput={(value) => setTexts({ ...texts, [name]: value })} />
          ))}
        </div>
        <p class="muted small">{words.notEdited}</p>
        <fieldset class="edit-where">
          <legend>{words.where}</legend>
          {allowed ? (
            <label class="check">
              <input type="radio" name="where" checked={!onNew} onChange={() => setOnNew(false)} />
              {words.onBranch(here.ref)}
            </label>
          ) : (
            <p class="warn-text">{words.mayNot(here.ref)}</p>
          )}
          <label class="check">
            <input type="radio" name="where" checked={onNew} onChange={() => setOnNew(true)} />
            {words.onNew}
          </label>
          {onNew ? <input class="input" aria-label={words.newBranch} value={branch} onInput={(event) => setBranch(event.currentTarget.value)} /> : null}
        </fieldset>
        <label class="field">
          <span class="label">{words.message}</span>
          <input class="input" value={message} onInput={(event) => setMessage(event.currentTarget.value)} />
        </label>
        {problem === null ? null : <ProblemBox problem={problem} />}
        <div class="actions">
          <span class="muted grow">{count === 0 ? words.unchanged : words.changed(count)}</span>
          <button type="button" class="button" onClick={onClose}>
            {text.cancel}
          </button>
          <button type="submit" class="button primary" disabled={!ready}>
            {words.save}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

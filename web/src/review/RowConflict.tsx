/** A row that both sides changed: its properties before, on each side, and as the merge leaves it. */
import { useEffect, useState } from "preact/hooks";

import type { Row } from "../api/reviewTypes";
import type { CatalogOutput, PropertyOutput } from "../api/types";
import { useLoad } from "../kit/load";
import { Plain } from "../kit/Plain";
import { Time } from "../kit/Time";
import { Value } from "../kit/Value";
import { source } from "../state/context";
import { agreedProperties, choose, chooseValue, contested, outcomeOf, SIDES, undoValue, type Outcome, type Side } from "../state/choices";
import { text } from "../text/review";
import { readKey } from "./change";
import type { ConflictProps, SideInfo } from "./ConflictView";
import { fieldText, readField } from "./typedValue";

/** Returns a property of the type of a table. */
export function propertyOf(catalog: CatalogOutput | undefined, table: string, name: string): PropertyOutput | undefined {
  const key = readKey(`${table}:`);
  const types = key?.kind === "edge" ? catalog?.edges : catalog?.nodes;
  return types?.find((each) => each.name === key?.type)?.properties.find((each) => each.name === name);
}

export function RowConflict(props: ConflictProps) {
  const { conflict, choices, sides } = props;
  const outcome = outcomeOf(conflict, choices);
  const names = contested(conflict);
  const shown = names.length > 0 ? names : conflict.properties;
  const agreed = agreedProperties(conflict).filter((name) => !shown.includes(name));
  const [open, setOpen] = useState(false);
  return (
    <div class="conflict-scroll" tabIndex={0} role="group" aria-label={text.conflict.list}>
      <table class="conflict-table">
        <thead>
          <tr>
            <th scope="col">{text.conflict.property}</th>
            {conflict.base === null ? null : <th scope="col">{text.conflict.before}</th>}
            {SIDES.map((side) => (
              <th scope="col" key={side}>
                <SideHead side={sides[side]} table={conflict.table_key} id={conflict.row_id} />
              </th>
            ))}
            <th scope="col">{text.conflict.result}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((name) => (
            <Property key={name} name={name} {...props} outcome={outcome} contested={names.includes(name)} />
          ))}
          {open ? agreed.map((name) => <Property key={name} name={name} {...props} outcome={outcome} contested={false} />) : null}
        </tbody>
      </table>
      {agreed.length === 0 ? null : (
        <button type="button" class="more-text" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? text.diff.showLess : text.conflict.agreed(agreed.length)}
        </button>
      )}
      {conflict.ours === null || conflict.theirs === null ? <KeepOrDelete {...props} /> : null}
    </div>
  );
}

/** The name of a side, and who changed the row there last. */
function SideHead({ side, table, id }: { side: SideInfo; table: string; id: string | null }) {
  const key = readKey(`${table}:`);
  const { place } = side;
  const known = place !== null && key !== null && id !== null;
  const loaded = useLoad(known ? JSON.stringify([place.commit, table, id]) : null, async (signal) => {
    if (place === null || key === null || id === null) return null;
    return (await source.entityHistory(place, key.type, id, 1, undefined, signal)).changes[0] ?? null;
  });
  const last = loaded.value;
  return (
    <span class="branch-head">
      <span>
        <Plain text={side.name} />
      </span>
      {last === undefined || last === null ? null : (
        <span class="muted small" title={last.message ?? undefined}>
          {last.actor_id === null ? null : <Plain text={last.actor_id} />} <Time at={last.created_at} />
        </span>
      )}
    </span>
  );
}

interface PropertyProps extends ConflictProps {
  name: string;
  outcome: Outcome;
  contested: boolean;
}

function Property({ name, conflict, choices, onChoices, sides, catalog, outcome, contested: isContested }: PropertyProps) {
  const type = propertyOf(catalog, conflict.table_key, name);
  const chosen = choices[conflict.id];
  const value = outcome.left.includes(name) || outcome.row === null || outcome.row === undefined ? (valueIn(chosen, name) ?? null) : outcome.row[name];
  const decided = (outcome.row !== undefined && outcome.row !== null) || valueIn(chosen, name) !== undefined;
  // The ends of an edge, and the bytes of a Blob, can only be taken with the whole row.
  const selectable = isContested && type !== undefined && !type.type.startsWith("Blob") && conflict.ours !== null && conflict.theirs !== null;
  return (
    <tr data-contested={isContested ? "" : undefined}>
      <th scope="row">{name}</th>
      {conflict.base === null ? null : (
        <td>
          <Value value={conflict.base[name]} />
        </td>
      )}
      {SIDES.map((side: Side) => {
        const row: Row | null = conflict[side];
        const picked = decided && row !== null && JSON.stringify(value ?? null) === JSON.stringify(row[name] ?? null);
        return (
          <td key={side} data-picked={picked && isContested ? "" : undefined}>
            {row === null ? (
              <span class="null">{text.conflict.deleted}</span>
            ) : selectable ? (
              <label class="pick">
                <input
                  type="radio"
                  name={`${conflict.id} ${name}`}
                  checked={picked}
                  aria-label={text.conflict.takeSide(sides[side].name, name)}
                  onChange={() => onChoices(chooseValue(choices, conflict.id, name, row[name] ?? null))}
                />
                <Value value={row[name]} />
              </label>
            ) : (
              <Value value={row[name]} />
            )}
          </td>
        );
      })}
      <td class="outcome">
        {outcome.row === null ? (
          <span class="null">{text.conflict.deleted}</span>
        ) : type === undefined || type.type.startsWith("Blob") || !isContested ? (
          decided ? <Value value={value} /> : <span class="muted">…</span>
        ) : (
          <ResultField
            label={text.conflict.resultOf(name)}
            type={type.optional && !type.type.endsWith("?") ? `${type.type}?` : type.type}
            value={decided ? value : undefined}
            onValue={(next) => onChoices(chooseValue(choices, conflict.id, name, next))}
            onClear={() => onChoices(undoValue(choices, conflict.id, name))}
          />
        )}
      </td>
    </tr>
  );
}

const valueIn = (choice: unknown, name: string): unknown => (typeof choice === "object" && choice !== null ? (choice as Record<string, unknown>)[name] : undefined);

interface FieldProps {
  label: string;
  type: string;
  value: unknown;
  onValue(value: unknown): void;
  onClear(): void;
}

/** The resulting value, which can be edited. */
export function ResultField({ label, type, value, onValue, onClear }: FieldProps) {
  const [typed, setTyped] = useState<string | null>(null);
  useEffect(() => setTyped(null), [JSON.stringify(value)]);
  const read = typed === null ? null : readField(typed, type);
  const commit = () => {
    if (typed === null || read === null) return;
    if (typed === "" && !type.endsWith("?")) onClear();
    else if (read.valid) onValue(read.value);
  };
  return (
    <>
      <input
        class="input"
        aria-label={label}
        aria-invalid={read !== null && !read.valid && typed !== ""}
        value={typed ?? fieldText(value)}
        placeholder={value === undefined ? "…" : value === null ? "null" : ""}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onChange={commit}
      />
      {read !== null && !read.valid && typed !== "" ? <span class="fault small">{text.conflict.invalid}</span> : null}
    </>
  );
}

/** A row that one side deleted: it is kept or deleted. */
function KeepOrDelete({ conflict, choices, onChoices, sides }: ConflictProps) {
  const side: Side = conflict.ours === null ? "theirs" : "ours";
  const chosen = choices[conflict.id];
  const has = Object.hasOwn(choices, conflict.id);
  return (
    <div class="row wrap keep-or-delete">
      <button type="button" class="button small" aria-pressed={has && chosen !== null} onClick={() => onChoices(choose(choices, conflict.id, side))}>
        <Plain text={text.conflict.keep(sides[side].name)} />
      </button>
      <button type="button" class="button small danger" aria-pressed={has && chosen === null} onClick={() => onChoices(choose(choices, conflict.id, null))}>
        {text.conflict.deleteRow}
      </button>
    </div>
  );
}

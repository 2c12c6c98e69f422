/**
 * The conflicts of a merge with the choices that settle them. Branch names stand for the sides, never "ours" and "theirs".
 *
 * The screen keeps the choices: `onChoices` gets the next ones. They are the value of `resolve`.
 */
import type { MergeConflictOutput, Row } from "../api/reviewTypes";
import type { CatalogOutput } from "../api/types";
import { Menu, type MenuItem } from "../kit/Menu";
import { Plain } from "../kit/Plain";
import { nodeLabel } from "../kit/Value";
import type { Place } from "../source/source";
import { ALL, canCombine, choose, contested, isRowConflict, outcomeOf, SIDES, undo, type Choices, type Side, type Word } from "../state/choices";
import { text } from "../text/review";
import { RowConflict } from "./RowConflict";
import { QueryConflict, RuleConflict, SchemaConflict } from "./RuleConflict";

export interface SideInfo {
  /** The name of the branch. */
  readonly name: string;
  /** Where its rows are read; null if only their values are known. */
  readonly place: Place | null;
}

export interface ConflictSides {
  /** The branch that changes. */
  readonly ours: SideInfo;
  /** The branch that is merged. */
  readonly theirs: SideInfo;
}

export interface ConflictProps {
  conflict: MergeConflictOutput;
  choices: Choices;
  onChoices(next: Choices): void;
  sides: ConflictSides;
  catalog: CatalogOutput | undefined;
}

interface Props extends Omit<ConflictProps, "conflict"> {
  conflicts: readonly MergeConflictOutput[];
  /** Settled rows of the last preview, by the id of the conflict. */
  settled: ReadonlyMap<string, Row | null>;
}

export function ConflictView({ conflicts, choices, onChoices, sides, catalog, settled }: Props) {
  return (
    <div class="conflict-list" role="group" aria-label={text.conflict.list}>
      {conflicts.filter(isRowConflict).length > 1 ? <ForAll conflicts={conflicts} choices={choices} onChoices={onChoices} sides={sides} /> : null}
      {conflicts.map((conflict, index) => (
        <ConflictCard key={`${conflict.id} ${conflict.kind} ${index}`} number={index + 1} conflict={conflict} choices={choices} onChoices={onChoices} sides={sides} catalog={catalog} previewed={settled.has(conflict.id)} />
      ))}
    </div>
  );
}

type State = "open" | "settled" | "elsewhere";

/** Returns whether the choices settle a conflict; a violation counts as settled if one of its rows has a choice. */
export function conflictState(conflict: MergeConflictOutput, choices: Choices): State {
  if (conflict.kind === "schema_conflict") return "elsewhere";
  if (isRowConflict(conflict)) return outcomeOf(conflict, choices).settled ? "settled" : "open";
  if (conflict.kind === "query_conflict") return Object.hasOwn(choices, conflict.id) || choices[ALL] === "ours" || choices[ALL] === "theirs" ? "settled" : "open";
  const names = [conflict.id, ...(conflict.rows ?? []).map((each) => each.id)];
  return names.some((name) => Object.hasOwn(choices, name)) ? "settled" : "open";
}

/** Returns the names of the choices that are about one conflict. */
function ownNames(conflict: MergeConflictOutput, choices: Choices): string[] {
  return [...new Set([conflict.id, ...(conflict.rows ?? []).map((each) => each.id)])].filter((name) => Object.hasOwn(choices, name));
}

function ConflictCard({ number, previewed, ...props }: ConflictProps & { number: number; previewed: boolean }) {
  const { conflict, choices, onChoices, sides } = props;
  const state = conflictState(conflict, choices);
  const own = ownNames(conflict, choices);
  return (
    <article class="card conflict" data-state={state} aria-label={text.conflict.title(number)}>
      <header>
        <span class="row wrap grow">
          <span class="muted number">{text.conflict.title(number)}</span>
          <ConflictTitle conflict={conflict} />
          <span class="muted">{text.conflict.kinds[conflict.kind] ?? conflict.kind}</span>
        </span>
        <span class="row">
          {own.length === 0 ? null : (
            <button type="button" class="button small" onClick={() => onChoices(own.reduce(undo, choices))}>
              {text.conflict.undo}
            </button>
          )}
          <span class={`badge ${state === "settled" ? "good" : state === "open" ? "warn" : "bad"}`}>
            {state === "settled" ? `${previewed ? "✓ " : ""}${text.conflict.settled}` : state === "open" ? text.conflict.unsettled : text.conflict.elsewhere}
          </span>
        </span>
      </header>
      {isRowConflict(conflict) ? <RowConflict {...props} /> : conflict.kind === "schema_conflict" ? <SchemaConflict {...props} /> : conflict.kind === "query_conflict" ? <QueryConflict {...props} /> : <RuleConflict {...props} />}
      {isRowConflict(conflict) ? <WholeRow {...props} sides={sides} /> : null}
    </article>
  );
}

function ConflictTitle({ conflict }: { conflict: MergeConflictOutput }) {
  const type = conflict.table_key.slice(conflict.table_key.indexOf(":") + 1);
  const row = conflict.ours ?? conflict.theirs ?? conflict.base ?? {};
  const label = conflict.row_id === null ? null : nodeLabel(row, conflict.row_id);
  return (
    <h3 class="row wrap">
      <span>{conflict.kind === "query_conflict" ? <Plain text={type} /> : type}</span>
      {label === null ? null : (
        <strong>
          <Plain text={label} />
        </strong>
      )}
    </h3>
  );
}

/** Choices for a whole row, and the same choice for more conflicts. */
function WholeRow({ conflict, choices, onChoices, sides }: ConflictProps) {
  const type = conflict.table_key.slice(conflict.table_key.indexOf(":") + 1);
  const chosen = choices[conflict.id];
  const button = (word: Word, label: string, help?: string) => (
    <button type="button" class="button small" key={word} aria-pressed={chosen === word} title={help} onClick={() => onChoices(choose(choices, conflict.id, word))}>
      {label}
    </button>
  );
  const general = (name: string, group: string, words: readonly Word[]): MenuItem[] =>
    words.map((word, index) => ({
      ...(index === 0 ? { group } : {}),
      label: word === "columns" ? text.conflict.combine : <Plain text={text.conflict.sideOf(sides[word].name)} />,
      checked: choices[name] === word,
      run: () => onChoices(undo(choose(choices, name, word), conflict.id)),
    }));
  const bySides = conflict.ours !== null && conflict.theirs !== null;
  return (
    <footer class="conflict-foot">
      {bySides ? (
        <span class="row wrap">
          <span class="muted small">{text.conflict.whole}</span>
          {SIDES.map((side: Side) => button(side, text.conflict.sideOf(sides[side].name)))}
          {canCombine(conflict) ? button("columns", text.conflict.combine, text.conflict.combineHelp) : null}
        </span>
      ) : null}
      <Menu
        label={text.conflict.forAll}
        button={text.conflict.forAll}
        class="button small"
        end
        items={[
          ...(bySides ? contested(conflict) : []).flatMap((property) => (property === "src" || property === "dst" ? [] : general(`${type}.${property}`, text.conflict.forProperty(type, property), SIDES))),
          ...general(type, text.conflict.forType(type), ["ours", "theirs", "columns"]),
        ]}
      />
    </footer>
  );
}

/** One choice for all conflicts. */
function ForAll({ conflicts, choices, onChoices, sides }: Omit<Props, "settled" | "catalog">) {
  const chosen = choices[ALL];
  return (
    <div class="for-all row wrap">
      <span class="muted">{text.conflict.forAllRows(conflicts.filter(isRowConflict).length)}</span>
      {(["ours", "theirs", "columns"] as const).map((word) => (
        <button type="button" class="button small" key={word} aria-pressed={chosen === word} title={word === "columns" ? text.conflict.combineHelp : undefined} onClick={() => onChoices(chosen === word ? undo(choices, ALL) : choose(choices, ALL, word))}>
          {word === "columns" ? text.conflict.combine : <Plain text={text.conflict.sideOf(sides[word].name)} />}
        </button>
      ))}
    </div>
  );
}

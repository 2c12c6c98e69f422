/** Conflicts that are no differing rows: broken rules of the merged graph, schemas, and stored queries. */
import type { ConflictRowOutput } from "../api/reviewTypes";
import { Plain } from "../kit/Plain";
import { nodeLabel, Value } from "../kit/Value";
import { choose, chooseValue, SIDES, undoValue, type Side } from "../state/choices";
import { href } from "../state/location";
import { text } from "../text/review";
import { readKey } from "./change";
import type { ConflictProps } from "./ConflictView";
import { propertyOf, ResultField } from "./RowConflict";

/** A rule that the merged graph breaks: the rows involved, each of which can be changed or removed. */
export function RuleConflict(props: ConflictProps) {
  const { conflict, sides } = props;
  const rows = conflict.rows ?? [];
  return (
    <div class="conflict-body stack tight">
      <p>
        <Plain text={conflict.message} />
      </p>
      {rows.length === 0 ? null : (
        <>
          <h4 class="muted small">{text.conflict.rowsInvolved}</h4>
          <ul class="rule-rows">
            {rows.map((row) => (
              <li key={row.id}>{row.row === null ? <DeletedRow {...props} row={row} /> : <InvolvedRow {...props} row={row} />}</li>
            ))}
          </ul>
        </>
      )}
      <p class="row wrap small">
        <span class="muted">{text.conflict.ruleHint}</span>
        {SIDES.map((side) => (
          <a key={side} href={href({ ref: sides[side].name, screen: "home", path: [], params: {} })}>
            <Plain text={text.conflict.openOn(sides[side].name)} />
          </a>
        ))}
      </p>
    </div>
  );
}

type RowProps = ConflictProps & { row: ConflictRowOutput };

/** A row that the merge deletes: a side that still has it can keep it. */
function DeletedRow({ row, choices, onChoices, sides }: RowProps) {
  return (
    <div class="row wrap">
      <span class="grow">
        <RowWords row={row} /> <span class="badge bad">{text.conflict.deleted}</span>
      </span>
      {SIDES.filter((side) => row[side] !== null).map((side: Side) => (
        <button type="button" class="button small" key={side} aria-pressed={choices[row.id] === side} onClick={() => onChoices(choose(choices, row.id, side))}>
          <Plain text={text.conflict.keepNode(row.row_id, sides[side].name)} />
        </button>
      ))}
    </div>
  );
}

function InvolvedRow({ row, conflict, choices, onChoices, catalog }: RowProps) {
  const gone = Object.hasOwn(choices, row.id) && choices[row.id] === null;
  const values = choices[row.id];
  const edge = readKey(row.id)?.kind === "edge";
  return (
    <div class="stack tight">
      <div class="row wrap">
        <span class={gone ? "grow gone" : "grow"}>
          <RowWords row={row} />
        </span>
        <button type="button" class="button small danger" aria-pressed={gone} onClick={() => onChoices(choose(choices, row.id, null))}>
          {edge ? text.conflict.deleteEdge : text.conflict.deleteRow}
        </button>
      </div>
      {gone
        ? null
        : conflict.properties.map((name) => {
            const type = propertyOf(catalog, row.table_key, name);
            const chosen = typeof values === "object" && values !== null && Object.hasOwn(values, name) ? values[name] : row.row?.[name];
            return (
              <div class="rule-property" key={name}>
                <span class="muted">{name}</span>
                {type === undefined || isKey(catalog, row, name) ? (
                  <Value value={chosen} />
                ) : (
                  <ResultField
                    label={text.conflict.resultOf(`${row.row_id} ${name}`)}
                    type={type.optional && !type.type.endsWith("?") ? `${type.type}?` : type.type}
                    value={chosen}
                    onValue={(next) => onChoices(chooseValue(choices, row.id, name, next))}
                    onClear={() => onChoices(undoValue(choices, row.id, name))}
                  />
                )}
              </div>
            );
          })}
    </div>
  );
}

const isKey = (catalog: ConflictProps["catalog"], row: ConflictRowOutput, name: string): boolean =>
  catalog?.nodes.find((each) => `node:${each.name}` === row.table_key)?.key.includes(name) ?? false;

function RowWords({ row }: { row: ConflictRowOutput }) {
  const key = readKey(row.id);
  const image = row.row ?? row.ours ?? row.theirs ?? {};
  if (key?.kind === "edge") {
    return (
      <span class="row-title">
        <Plain text={String(image["src"] ?? "")} />
        <span class="edge-name">
          <span class="cut">{key.type}</span>
        </span>
        <Plain text={String(image["dst"] ?? "")} />
      </span>
    );
  }
  return (
    <span class="row-title">
      <strong>
        <Plain text={nodeLabel(image, row.row_id)} />
      </strong>
      <span class="muted">
        {key?.type} <Plain text={row.row_id} />
      </span>
    </span>
  );
}

/** Schemas that cannot be merged: settled on a branch. */
export function SchemaConflict({ conflict, sides }: ConflictProps) {
  return (
    <div class="conflict-body stack tight">
      <p>
        <Plain text={conflict.message} />
      </p>
      <p class="muted">{text.conflict.schemaHint}</p>
      <p class="row wrap">
        {SIDES.map((side) => (
          <a class="button small" key={side} href={href({ ref: sides[side].name, screen: "schema", path: [], params: {} })}>
            <Plain text={text.conflict.openOn(sides[side].name)} />
          </a>
        ))}
      </p>
    </div>
  );
}

/** A stored query that both sides changed: one of the two texts is taken. */
export function QueryConflict({ conflict, choices, onChoices, sides }: ConflictProps) {
  return (
    <div class="conflict-body stack tight">
      <p>
        <Plain text={conflict.message} />
      </p>
      <div class="query-sides">
        {SIDES.map((side) => {
          const row = conflict[side];
          return (
            <section key={side} data-picked={choices[conflict.id] === side ? "" : undefined}>
              <label class="pick">
                <input type="radio" name={conflict.id} checked={choices[conflict.id] === side} onChange={() => onChoices(choose(choices, conflict.id, side))} />
                <Plain text={text.conflict.sideOf(sides[side].name)} />
              </label>
              {row === null ? (
                <p class="null">{text.conflict.deleted}</p>
              ) : (
                <pre tabIndex={0}>
                  <Plain text={String(row["source"] ?? "")} />
                </pre>
              )}
            </section>
          );
        })}
      </div>
    </div>
  );
}

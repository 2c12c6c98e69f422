/** The types of a schema as a table: the same as the picture, for keyboards and screen readers. */
import { schemaText as text } from "../../text/schema";
import type { ComparedType, Mark } from "./compare";
import { MARK_SIGNS } from "./Picture";

interface Props {
  types: readonly ComparedType[];
  rowsOf(table: string): number | null;
  selected: string | null;
  hrefOf(name: string): string;
}

const TONES: Readonly<Record<Mark, string>> = { same: "", added: "good", removed: "bad", renamed: "warn", changed: "warn" };

export function MarkBadge({ mark, before }: { mark: Mark; before: string | null }) {
  if (mark === "same") return null;
  return (
    <span class={`badge ${TONES[mark]}`}>
      {MARK_SIGNS[mark]}
      {text.marks[mark]}
      {before === null ? "" : ` (${text.panel.renamed(before)})`}
    </span>
  );
}

export function TypeList({ types, rowsOf, selected, hrefOf }: Props) {
  const words = text.list;
  return (
    <div class="type-list scroll" tabIndex={0} role="group" aria-label={text.types}>
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">{words.type}</th>
            <th scope="col">{words.kind}</th>
            <th scope="col" class="number">
              {words.rows}
            </th>
            <th scope="col">{words.properties}</th>
          </tr>
        </thead>
        <tbody>
          {types.map(({ kind, type, mark, before, properties }) => (
            <tr key={`${kind} ${type.name}`} aria-selected={type.name === selected}>
              <td>
                <a href={hrefOf(type.name)}>{type.name}</a> <MarkBadge mark={mark} before={before} />
              </td>
              <td class="muted">{kind === "edge" ? text.panel.from(type.from ?? "", type.to ?? "") : text.kinds[kind]}</td>
              <td class="number">{kind === "interface" ? "" : (rowsOf(`${kind}:${type.name}`)?.toLocaleString() ?? "")}</td>
              <td class="muted number">{properties.length}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

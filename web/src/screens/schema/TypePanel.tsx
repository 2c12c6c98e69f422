/** One type: description, properties with constraints, the share of nulls and values, and its first rows. */
import { Icon } from "../../kit/Icon";
import { Loading, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { nodeLabel, Value, valueText } from "../../kit/Value";
import { smallRows } from "../../source/schema";
import type { Place } from "../../source/source";
import { href, link, replace } from "../../state/location";
import { schemaText as text } from "../../text/schema";
import { cut, keysFirst, signOf } from "./boxes";
import type { ComparedProperty, ComparedType } from "./compare";
import { MarkBadge } from "./TypeList";

const ROWS = 10;
const VALUES = 6;

interface Props {
  here: Place;
  compared: ComparedType;
  rows: number | null;
  implementers: readonly string[];
}

export function TypePanel({ here, compared, rows, implementers }: Props) {
  const { type, kind, mark } = compared;
  const stored = mark !== "removed";
  return (
    <section class="card type-panel" aria-label={type.name}>
      <header>
        <div class="row wrap">
          <h2>{type.name}</h2>
          <span class="badge">{text.kinds[kind]}</span>
          <MarkBadge mark={mark} before={compared.before} />
          {rows === null ? null : <span class="muted number">{text.rows(rows)}</span>}
        </div>
        <div class="row">
          {stored && kind !== "interface" ? (
            <a class="button small" href={href({ screen: "query", path: [], params: kind === "node" ? { type: type.name } : { q: edgeQuery(compared) } })}>
              {text.panel.query}
            </a>
          ) : null}
          <a class="button plain icon" href={href({ path: [] })} aria-label={text.panel.close} title={text.panel.close}>
            <Icon name="close" />
          </a>
        </div>
      </header>
      <div class="body stack">
        {type.description === undefined ? null : (
          <p>
            <Plain text={type.description} />
          </p>
        )}
        <Facts compared={compared} implementers={implementers} />
        <Properties here={here} compared={compared} stored={stored} />
        {stored ? <FirstRows here={here} compared={compared} /> : null}
      </div>
    </section>
  );
}

function Facts({ compared: { type, notes }, implementers }: { compared: ComparedType; implementers: readonly string[] }) {
  const words = text.panel;
  const facts = [
    ...(type.from === undefined ? [] : [words.from(type.from, type.to ?? "")]),
    ...(type.cardinality === undefined || type.cardinality === "0.." ? [] : [words.cardinality(type.cardinality)]),
    ...(type.implements === undefined || type.implements.length === 0 ? [] : [words.implements(type.implements)]),
    ...(implementers.length === 0 ? [] : [words.implementedBy(implementers)]),
  ];
  const wide = type.constraints.filter((each) => each.columns.length > 1).map((each) => each.text);
  if (facts.length + wide.length + notes.length === 0) return null;
  return (
    <div class="row wrap">
      {facts.map((each) => (
        <span class="chip" key={each}>
          {each}
        </span>
      ))}
      {wide.map((each) => (
        <code class="chip" key={each} title={words.constraints}>
          {each}
        </code>
      ))}
      {notes.map((each) => (
        <code class={`badge ${each.startsWith("+") ? "good" : "bad"}`} key={each}>
          {each}
        </code>
      ))}
    </div>
  );
}

/** The pattern that finds the rows of a type, and the variable that has its properties. */
function patternOf({ kind, type }: ComparedType): { match: string; owner: string; counted: string } {
  if (kind !== "edge") return { match: `$x: ${type.name}`, owner: "$x", counted: "$x" };
  const word = `${type.name.slice(0, 1).toLowerCase()}${type.name.slice(1)}`;
  return { match: `$a: ${type.from}  $b: ${type.to}  $a $x:${word} $b`, owner: "$x", counted: "$a" };
}

const readable = (each: ComparedProperty): boolean => each.mark !== "removed" && !each.property.type.startsWith("Blob");
const hasValues = (each: ComparedProperty): boolean => readable(each) && !/^(Vector|\[)/.test(each.property.type);

function edgeQuery(compared: ComparedType): string {
  const { match, owner } = patternOf(compared);
  const names = compared.properties.filter(readable).map((each) => `, ${owner}.${each.property.name}`);
  return `match { ${match} }\nreturn { $a, $b${names.join("")} }\nlimit 100\n`;
}

function Properties({ here, compared, stored }: { here: Place; compared: ComparedType; stored: boolean }) {
  const words = text.panel;
  const { type, properties } = compared;
  const counted = properties.filter(readable);
  const { match, owner, counted: all } = patternOf(compared);
  const columns = counted.map((each, index) => `count(${owner}.${each.property.name}) as c${index}`);
  const query = `match { ${match} } return { ${[`count(${all}) as total`, ...columns].join(", ")} }`;
  const filled = useLoad(stored && counted.length > 0 ? `${here.commit} ${query}` : null, (signal) => smallRows(here, query, signal)).value?.[0];
  if (properties.length === 0) return <p class="muted">{words.noProperties}</p>;
  const open = link.value.params["values"];
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={text.list.properties}>
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">{words.property}</th>
            <th scope="col">{words.type}</th>
            <th scope="col">{words.constraint}</th>
            <th scope="col" class="number">
              {words.nulls}
            </th>
            <th scope="col">{words.values}</th>
          </tr>
        </thead>
        <tbody>
          {keysFirst(compared).map((each) => (
            <PropertyRow key={`${each.mark} ${each.property.name}`} here={here} compared={compared} each={each} nulls={shareOf(filled, counted.indexOf(each))} open={open === each.property.name} sign={signOf(type, each.property)} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function shareOf(filled: Record<string, unknown> | undefined, index: number): number | null {
  const total = Number(filled?.["total"] ?? 0);
  const count = filled?.[`c${index}`];
  return total === 0 || count === undefined ? null : 1 - Number(count) / total;
}

const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });

interface RowProps {
  here: Place;
  compared: ComparedType;
  each: ComparedProperty;
  nulls: number | null;
  open: boolean;
  sign: keyof typeof text.signs | null;
}

function PropertyRow({ here, compared, each, nulls, open, sign }: RowProps) {
  const { property, mark, before } = each;
  const constraints = compared.type.constraints.filter((one) => one.columns.length === 1 && one.columns[0] === property.name && one.kind !== "key").map((one) => one.text);
  const { values: _, ...others } = link.value.params;
  return (
    <>
      <tr>
        <td>
          <strong>{property.name}</strong> {sign === null ? null : <span class="badge">{text.signs[sign]}</span>} <MarkBadge mark={mark} before={before} />
          {property.description === undefined ? null : (
            <div class="muted small">
              <Plain text={property.description} />
            </div>
          )}
        </td>
        <td>
          <code class="type-text">{property.type}</code>
        </td>
        <td>
          {[...constraints, ...(property.embed === undefined ? [] : [text.panel.embed(property.embed)])].map((one) => (
            <code class="constraint" key={one}>
              {one}
            </code>
          ))}
        </td>
        <td class="number">{nulls === null ? "" : percent.format(nulls)}</td>
        <td>
          {hasValues(each) ? (
            <button type="button" class="button small" aria-expanded={open} aria-label={text.panel.showOf(property.name)} onClick={() => replace({ params: { ...others, ...(open ? {} : { values: property.name }) } })}>
              {text.panel.show}
            </button>
          ) : null}
        </td>
      </tr>
      {open && hasValues(each) ? (
        <tr>
          <td colSpan={5}>
            <Values here={here} compared={compared} property={property.name} />
          </td>
        </tr>
      ) : null}
    </>
  );
}

function Values({ here, compared, property }: { here: Place; compared: ComparedType; property: string }) {
  const { match, owner, counted } = patternOf(compared);
  const query = `match { ${match} } return { ${owner}.${property} as value, count(${counted}) as n } order { n desc, value } limit ${VALUES}`;
  const loaded = useLoad(`${here.commit} ${query}`, (signal) => smallRows(here, query, signal));
  return (
    <Loading of={loaded}>
      {(rows) =>
        rows.length === 0 ? (
          <span class="muted">{text.panel.noValues}</span>
        ) : (
          <ul class="value-counts">
            {rows.map((row, index) => (
              <li key={index}>
                <Value value={row["value"]} /> <span class="muted number">× {Number(row["n"]).toLocaleString()}</span>
              </li>
            ))}
          </ul>
        )
      }
    </Loading>
  );
}

function FirstRows({ here, compared }: { here: Place; compared: ComparedType }) {
  const { kind, type } = compared;
  const { match, owner } = patternOf(compared);
  const names = compared.properties
    .filter(readable)
    .map((each) => each.property.name)
    .sort((a, b) => Number(type.key.includes(b)) - Number(type.key.includes(a)));
  const columns = kind === "edge" ? ["id($a) as src", "id($b) as dst", ...names.map((name, index) => `${owner}.${name} as p${index}`)] : ["$x"];
  const query = `match { ${match} } return { ${columns.join(", ")} } limit ${ROWS}`;
  const loaded = useLoad(`${here.commit} ${query}`, (signal) => smallRows(here, query, signal));
  return (
    <div class="stack tight">
      <h3>{text.panel.firstRows}</h3>
      <Loading of={loaded}>
        {(rows) => (rows.length === 0 ? <p class="muted">{text.panel.noRows}</p> : <RowTable name={type.name} kind={kind} rows={rows} names={names} ends={[type.from ?? "", type.to ?? ""]} />)}
      </Loading>
    </div>
  );
}

function RowTable({ name, kind, rows, names, ends }: { name: string; kind: string; rows: readonly Record<string, unknown>[]; names: readonly string[]; ends: readonly [string, string] }) {
  const entity = (type: string, id: string) => href({ screen: "entity", path: [type, id], params: {} });
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={text.panel.firstRowsOf(name)}>
      <table class="plain-table row-table">
        <thead>
          <tr>
            {(kind === "edge" ? ["from", "to", ...names] : names).map((each) => (
              <th scope="col" key={each}>
                {each}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => {
            if (kind === "edge") {
              return (
                <tr key={index}>
                  {(["src", "dst"] as const).map((end, side) => (
                    <td key={end}>
                      <a href={entity(ends[side] as string, String(row[end]))}>
                        <Plain text={String(row[end])} />
                      </a>
                    </td>
                  ))}
                  {names.map((each, at) => (
                    <td key={each}>
                      <Value value={row[`p${at}`]} />
                    </td>
                  ))}
                </tr>
              );
            }
            const node = row["x"] as Record<string, unknown>;
            const id = String(node["id"]);
            return (
              <tr key={id}>
                {names.map((each, at) => (
                  <td key={each}>
                    {at === 0 && kind === "node" ? (
                      <a href={entity(name, id)} title={nodeLabel(node, id)}>
                        <Plain text={cut(valueText(node[each] ?? id), 120)} />
                      </a>
                    ) : (
                      <Value value={node[each]} />
                    )}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

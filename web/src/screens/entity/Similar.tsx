/** The nodes of the same type whose vectors are nearest to the vector of a node. */
import type { EntityOutput, CatalogOutput } from "../../api/types";
import { Loading, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { isNode, nodeLabel } from "../../kit/Value";
import type { Place } from "../../source/source";
import { source } from "../../state/context";
import { href } from "../../state/location";
import { entityText as words } from "../../text/entity";

const SHOWN = 5;

interface Vector {
  readonly property: string;
  readonly type: string;
  readonly value: readonly number[];
}

/** Returns the first vector of a node. */
export function vectorOf(entity: EntityOutput, catalog: CatalogOutput | undefined): Vector | null {
  const declared = catalog?.nodes.find((each) => each.name === entity.type);
  for (const { name, type } of declared?.properties ?? []) {
    const value = entity.data[name];
    if (type.startsWith("Vector") && Array.isArray(value)) return { property: name, type: type.replace("?", ""), value: value as number[] };
  }
  return null;
}

const queryOf = (type: string, { property, type: vector }: Vector): string =>
  `query similar($v: ${vector}, $id: String) { match { $x: ${type}  id($x) != $id } return { $x, nearest($x.${property}, $v) as distance } order { nearest($x.${property}, $v) } limit ${SHOWN} }`;

export function Similar({ here, entity, vector }: { here: Place; entity: EntityOutput; vector: Vector }) {
  const loaded = useLoad(JSON.stringify([here.commit, entity.type, entity.id, vector.property]), async (signal) => {
    const table = await source.query(here, { text: queryOf(entity.type, vector), name: null, params: { v: vector.value, id: entity.id } }, null, signal);
    return Array.from({ length: table.rowCount }, (_, row) => ({ node: table.cell(0, row), distance: Number(table.cell(1, row)) }));
  });
  return (
    <section class="card similar">
      <header>
        <h2>{words.similar}</h2>
        <span class="muted">{words.similarBy(SHOWN, vector.property)}</span>
      </header>
      <Loading of={loaded}>
        {(rows) =>
          rows.length === 0 ? (
            <p class="empty small">{words.noSimilar}</p>
          ) : (
            <ul class="list">
              {rows.map(({ node, distance }) =>
                isNode(node) ? (
                  <li key={node.id}>
                    <a class="item" href={href({ screen: "entity", path: [entity.type, node.id], params: {} })}>
                      <span class="chip-dot" />
                      <span class="grow cut">
                        <Plain text={nodeLabel(node, node.id)} />
                      </span>
                      <span class="muted number">{(1 - distance).toFixed(2)}</span>
                    </a>
                  </li>
                ) : null,
              )}
            </ul>
          )
        }
      </Loading>
    </section>
  );
}

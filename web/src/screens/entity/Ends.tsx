/** The ends of an edge, with a picture of both: an edge has a page as a node has. */
import { useMemo } from "preact/hooks";

import type { CatalogOutput, EntityOutput, TypeOutput } from "../../api/types";
import { kindOf } from "../../kit/kinds";
import { Loading, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { nodeLabel } from "../../kit/Value";
import { PictureBuilder } from "../../picture/build";
import { Picture } from "../../picture/Picture";
import type { Place } from "../../source/source";
import { source } from "../../state/context";
import { go, href } from "../../state/location";
import { text } from "../../text/en";
import { entityText as words } from "../../text/entity";

interface Props {
  here: Place;
  edge: EntityOutput;
  declared: TypeOutput;
  catalog: CatalogOutput;
}

export function Ends({ here, edge, declared, catalog }: Props) {
  const ends = [
    { role: words.from, type: declared.from ?? "", id: String(edge.data["src"]) },
    { role: words.to, type: declared.to ?? "", id: String(edge.data["dst"]) },
  ];
  const loaded = useLoad(JSON.stringify([here.commit, ends]), (signal) => Promise.all(ends.map(({ type, id }) => source.entity(here, type, id, signal))));
  const labels = ends.map(({ id }, at) => nodeLabel(loaded.value?.[at]?.data ?? {}, id));
  const data = useMemo(() => {
    const builder = new PictureBuilder(catalog);
    const [from, to] = ends.map(({ type, id }, at) => builder.node(type, id, labels[at] ?? id));
    builder.edge(from ?? null, to ?? null, edge.type);
    return builder.build();
  }, [loaded.value, catalog]);
  return (
    <>
      <section class="card">
        <header>
          <h2>{words.ends}</h2>
        </header>
        <Loading of={loaded}>
          {() => (
            <ul class="list neighbors">
              {ends.map(({ role, type, id }, at) => (
                <li key={role}>
                  <a class={`item kind-${kindOf(catalog, type)}`} href={href({ path: [type, id], params: {} })}>
                    <span class="muted small edge">{role}</span>
                    <span class="chip-dot" />
                    <span class="grow cut">
                      <Plain text={labels[at] ?? id} />
                    </span>
                    <span class="muted small">{type}</span>
                  </a>
                </li>
              ))}
            </ul>
          )}
        </Loading>
      </section>
      <section class="card entity-picture">
        <header>
          <h2>{text.entity.picture}</h2>
        </header>
        <Picture
          data={data}
          label={text.picture.sentence(data.nodes.length, data.src.length, edge.type)}
          nodeHref={(type, id) => href({ path: [type, id], params: {} })}
          onOpen={(type, id) => go({ path: [type, id], params: {} })}
          compact
        />
      </section>
    </>
  );
}

/** How data gets into the graph, with the names of its own schema, and whether its indexes cover all rows. */
import { useState } from "preact/hooks";

import type { CatalogOutput } from "../../api/types";
import { copyText } from "../../kit/announce";
import { Dialog } from "../../kit/Dialog";
import { Icon } from "../../kit/Icon";
import { Loading, useLoad } from "../../kit/load";
import type { Place } from "../../source/source";
import { may, source } from "../../state/context";
import { MAIN } from "../../state/link";
import { href } from "../../state/location";
import { text } from "../../text/en";

const words = text.home;

/** Returns a record of the first node type and the command that loads a file of such records. */
function example(catalog: CatalogOutput, branch: string | null): string {
  const type = catalog.nodes[0];
  const required = (type?.properties ?? []).filter((each) => !each.optional).map((each) => [each.name, "…"]);
  const record = JSON.stringify({ type: type?.name ?? "Type", data: Object.fromEntries(required) });
  const where = branch === null || branch === MAIN ? "" : ` --branch '${branch}'`;
  return `${record}\nomnigraph load records.jsonl --mode append${where}`;
}

/** Shown in place of the numbers of a graph that has none. */
export function EmptyGraph({ here, catalog }: { here: Place; catalog: CatalogOutput }) {
  return (
    <div class="empty">
      <strong>{words.empty}</strong>
      <span>{words.emptyHint}</span>
      <pre>{example(catalog, here.branch)}</pre>
    </div>
  );
}

export function LoadButton({ here }: { here: Place }) {
  const [open, setOpen] = useState(false);
  const catalog = useLoad(open ? `${here.graph} ${here.commit}` : null, (signal) => source.catalog(here, signal));
  return (
    <>
      <button type="button" class="button" onClick={() => setOpen(true)}>
        {words.load}
      </button>
      {open ? (
        <Dialog title={words.load} onClose={() => setOpen(false)} wide>
          <p class="muted">{words.loadHint}</p>
          <Loading of={catalog}>
            {(value) => (
              <>
                <pre>{example(value, here.branch)}</pre>
                <div class="actions">
                  <button type="button" class="button" onClick={() => void copyText(example(value, here.branch))}>
                    <Icon name="copy" />
                    {text.copy}
                  </button>
                  <button type="button" class="button primary" onClick={() => setOpen(false)}>
                    {text.close}
                  </button>
                </div>
              </>
            )}
          </Loading>
        </Dialog>
      ) : null}
    </>
  );
}

/** Says whether the indexes cover all rows. The figures are those of the newest commit of main, for administrators. */
export function IndexLine({ here }: { here: Place }) {
  const allowed = may("admin");
  const status = useLoad(allowed ? `${here.graph} ${here.commit}` : null, (signal) => source.admin.status(signal));
  const tables = status.value?.graphs.find((each) => each.graph_id === here.graph)?.tables?.filter((each) => each.uncovered_rows !== undefined) ?? [];
  if (tables.length === 0) return null;
  const uncovered = tables.filter((each) => (each.uncovered_rows ?? 0) > 0);
  const rows = uncovered.reduce((sum, each) => sum + (each.uncovered_rows ?? 0), 0);
  return (
    <a class="muted small" href={href({ screen: "admin", path: [], params: { tab: "tables" } })}>
      {words.indexes(tables.length - uncovered.length, tables.length, rows)}
    </a>
  );
}

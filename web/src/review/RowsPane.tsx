/** The middle pane: changed rows in pages. j and k move the selection, v marks a row as viewed. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { RowChangeOutput } from "../api/reviewTypes";
import { Skeleton } from "../kit/load";
import { ProblemBox } from "../kit/ProblemBox";
import { text } from "../text/review";
import { nodeKey, rowKey } from "./change";
import { ChangeRow, type RowContext } from "./ChangeRow";
import type { RowList } from "./rows";
import type { Viewed } from "./viewed";

interface Props {
  list: RowList;
  total: number;
  context: RowContext;
  selected: string | null;
  onSelect(key: string | null): void;
  viewed: Viewed;
  gone: ReadonlyMap<string, readonly RowChangeOutput[]>;
  goneMore: boolean;
  narrow: boolean;
  below?(change: RowChangeOutput): ComponentChildren;
  filters: ComponentChildren;
}

export function RowsPane({ list, total, context, selected, onSelect, viewed, gone, goneMore, narrow, below, filters }: Props) {
  const end = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const button = end.current;
    if (button === null || list.loading) return undefined;
    const observer = new IntersectionObserver((entries) => entries.some((each) => each.isIntersecting) && list.more(), { rootMargin: "200px" });
    observer.observe(button);
    return () => observer.disconnect();
  }, [list.rows.length, list.loading, list.done]);
  useKeys(list.rows, selected, onSelect, viewed);
  return (
    <section class="card rows-pane" {...(narrow ? { role: "tabpanel", id: "panel-rows", "aria-labelledby": "tab-rows" } : { "aria-label": text.diff.rowsPane })}>
      {filters}
      <div class="changes" role="feed" aria-label={text.diff.list} aria-busy={list.loading} title={undefined}>
        {list.rows.map((change, index) => {
          const key = rowKey(change);
          const edges = change.op === "delete" ? gone.get(nodeKey(change.type_name, change.id)) : undefined;
          return (
            <ChangeRow
              key={key}
              change={change}
              context={context}
              position={index + 1}
              selected={key === selected}
              viewed={viewed.rows.has(key)}
              onSelect={() => onSelect(key === selected ? null : key)}
              onViewed={(value) => viewed.set(key, value)}
              edges={edges === undefined ? undefined : { rows: edges, more: goneMore }}
            >
              {below?.(change)}
            </ChangeRow>
          );
        })}
      </div>
      {list.problem === null ? null : <ProblemBox problem={list.problem} onRetry={list.more} />}
      {list.loading && list.rows.length === 0 ? <Skeleton /> : null}
      {!list.loading && list.done && list.rows.length === 0 ? <p class="empty">{list.read === 0 ? text.diff.none : text.diff.noMatch}</p> : null}
      <div class="pane-foot row spread">
        <span class="muted small number">{text.diff.searched(list.read, Math.max(total, list.read))}</span>
        {list.done ? (
          <span class="muted small only-wide">{text.diff.keys}</span>
        ) : (
          <button type="button" class="button small" ref={end} disabled={list.loading} onClick={list.more}>
            {text.diff.more}
          </button>
        )}
      </div>
    </section>
  );
}

function useKeys(rows: readonly RowChangeOutput[], selected: string | null, onSelect: Props["onSelect"], viewed: Viewed): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || /^(input|textarea|select)$/i.test(target.tagName) || target.isContentEditable) return;
      if (document.querySelector("dialog[open]") !== null) return;
      const at = rows.findIndex((each) => rowKey(each) === selected);
      const next = event.key === "j" ? rows[Math.min(at + 1, rows.length - 1)] : event.key === "k" ? rows[Math.max(at - 1, 0)] : undefined;
      if (next !== undefined) onSelect(rowKey(next));
      else if (event.key === "v" && selected !== null && at >= 0) viewed.set(selected, !viewed.rows.has(selected));
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });
}

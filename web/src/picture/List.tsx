/** The nodes of a picture as a list, by type. */
import { useEffect, useMemo, useRef } from "preact/hooks";

import { Plain } from "../kit/Plain";
import { text } from "../text/en";
import { markedLabel, type PictureData } from "./scene";

const LISTED_MAX = 500;
const collator = new Intl.Collator();

interface Props {
  data: PictureData;
  selected: number | null;
  onPick(node: number): void;
  nodeHref?(type: string, id: string): string;
  onExpand?(type: string, id: string): void;
}

export function List({ data, selected, onPick, nodeHref, onExpand }: Props) {
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (selected !== null) root.current?.querySelector("[data-picked]")?.scrollIntoView({ block: "nearest" });
  }, [selected]);
  const order = useMemo(() => data.nodes.map((_, index) => index).sort((a, b) => compare(data, a, b)), [data]);
  const chosen = selected === null ? undefined : data.nodes[selected];
  return (
    <div class="picture-list" ref={root}>
      <div class="chosen" aria-live="polite">
        {chosen === undefined ? (
          <span class="muted">{text.picture.summary(data.nodes.length, data.src.length)}</span>
        ) : (
          <span class="row wrap">
            {nodeHref === undefined ? (
              <strong>
                <Plain text={chosen.label} />
              </strong>
            ) : (
              <a href={nodeHref(chosen.type, chosen.id)}>
                <Plain text={chosen.label} />
              </a>
            )}
            <span class="muted">{chosen.type}</span>
            {onExpand === undefined ? null : (
              <button type="button" class="button small" onClick={() => onExpand(chosen.type, chosen.id)}>
                {text.picture.expand}
              </button>
            )}
          </span>
        )}
      </div>
      <ul class="list" aria-label={text.picture.list} tabIndex={0}>
        {order.slice(0, LISTED_MAX).map((index) => {
          const node = data.nodes[index];
          if (node === undefined) return null;
          return (
            <li key={`${node.type} ${node.id}`}>
              <button type="button" class={`item kind-${data.kinds[index] ?? 0}`} aria-pressed={index === selected} data-picked={index === selected ? "" : undefined} onClick={() => onPick(index)}>
                <span class="chip-dot" />
                <span class="grow cut">
                  <Plain text={markedLabel(node.label, data.marks[index] ?? 0)} />
                </span>
                <span class="muted small">{node.type}</span>
              </button>
            </li>
          );
        })}
      </ul>
      {order.length > LISTED_MAX ? <p class="muted small pad">{text.picture.listCut(LISTED_MAX, order.length)}</p> : null}
    </div>
  );
}

function compare(data: PictureData, a: number, b: number): number {
  const [left, right] = [data.nodes[a], data.nodes[b]];
  if (left === undefined || right === undefined) return 0;
  return collator.compare(left.type, right.type) || collator.compare(left.label, right.label);
}

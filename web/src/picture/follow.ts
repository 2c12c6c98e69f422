/** Walks a picture by keys: an arrow follows the edge that points most nearly in its direction. */
import type { PictureData, Places } from "./scene";

/** Returns the neighbour of the selected node that lies in the direction of an arrow key; without a selection, the first node. */
export function follow(data: PictureData, places: Places, selected: number | null, key: string): number | null {
  if (data.nodes.length === 0) return null;
  if (selected === null) return 0;
  const dx = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
  const dy = key === "ArrowUp" ? 1 : key === "ArrowDown" ? -1 : 0;
  let best: number | null = null;
  let score = 0;
  for (let edge = 0; edge < data.src.length; edge += 1) {
    const from = data.src[edge] as number;
    const to = data.dst[edge] as number;
    const other: number | null = from === selected ? to : to === selected ? from : null;
    if (other === null || other === selected) continue;
    const x = (places[2 * other] as number) - (places[2 * selected] as number);
    const y = (places[2 * other + 1] as number) - (places[2 * selected + 1] as number);
    const along = (x * dx + y * dy) / (Math.sqrt(x * x + y * y) || 1);
    if (along > score) [best, score] = [other, along];
  }
  return best;
}

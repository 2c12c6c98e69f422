/** The lanes of one row as SVG. A branch has one colour everywhere; names stand beside the lanes. */
import { KINDS } from "../../kit/kinds";
import { MAIN } from "../../state/link";
import type { LaneLine } from "./lanes";

const STEP = 14;
const LANES_MAX = 14;
export const ROW = 40;

interface Props {
  width: number;
  lines: readonly LaneLine[];
  dot?: { lane: number; branch: string; merge: boolean };
  /** Takes the height of its row, for straight lines only. */
  stretched?: boolean;
}

/** Lanes beyond the last one shown share its column. */
const x = (lane: number): number => STEP * (Math.min(lane, LANES_MAX - 1) + 0.5) + 6;

export const laneWidth = (lanes: number): number => STEP * Math.min(lanes, LANES_MAX) + 12;

/** Returns the colour of a branch: main has the first one, others by their names. */
export function branchKind(branch: string): number {
  if (branch === MAIN) return 0;
  let sum = 0;
  for (const sign of branch) sum = (sum * 31 + (sign.codePointAt(0) ?? 0)) % 65_521;
  return 1 + (sum % (KINDS - 1));
}

export function LaneColumn({ width, lines, dot, stretched = false }: Props) {
  const middle = ROW / 2;
  return (
    <svg class={stretched ? "lanes stretched" : "lanes"} width={width} height={ROW} viewBox={`0 0 ${width} ${ROW}`} preserveAspectRatio="none" aria-hidden="true">
      {lines.map((line, index) => (
        <path key={index} class={`lane-${branchKind(line.branch)}`} d={pathOf(line, dot?.lane ?? line.lane, middle)} vector-effect="non-scaling-stroke" />
      ))}
      {dot === undefined ? null : <Dot at={x(dot.lane)} middle={middle} kind={branchKind(dot.branch)} merge={dot.merge} />}
    </svg>
  );
}

/** A round dot in a row of any height: a line without length and with round ends. A merge is a ring. */
function Dot({ at, middle, kind, merge }: { at: number; middle: number; kind: number; merge: boolean }) {
  const point = `M${at} ${middle}h0.01`;
  return (
    <>
      <path class={`dot lane-${kind}`} d={point} vector-effect="non-scaling-stroke" />
      {merge ? <path class="hole" d={point} vector-effect="non-scaling-stroke" /> : null}
    </>
  );
}

function pathOf(line: LaneLine, dot: number, middle: number): string {
  const at = x(line.lane);
  if (line.part === "past") return `M${at} 0V${ROW}`;
  const from = x(dot);
  const end = line.part === "in" ? 0 : ROW;
  if (at === from) return `M${from} ${middle}V${end}`;
  const bend = line.part === "in" ? -middle : middle;
  return `M${from} ${middle}C${at} ${middle} ${at} ${middle + bend * 0.35} ${at} ${end}`;
}

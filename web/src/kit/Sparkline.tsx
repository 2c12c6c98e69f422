/** The course of a number as a small line; the label says its range. */
const WIDTH = 120;
const HEIGHT = 30;

/** Returns the points of a line over the whole width; the least value is 0 or below. */
export function sparkPoints(values: readonly number[]): string {
  const shown = values.length === 1 ? [...values, ...values] : values;
  const least = Math.min(0, ...shown);
  const span = Math.max(...shown, least + 1e-9) - least || 1;
  return shown.map((value, at) => `${((at / Math.max(1, shown.length - 1)) * WIDTH).toFixed(1)},${(HEIGHT - 1 - ((value - least) / span) * (HEIGHT - 3)).toFixed(1)}`).join(" ");
}

export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  if (values.length === 0) return null;
  const points = sparkPoints(values);
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <polygon class="area" points={`0,${HEIGHT} ${points} ${WIDTH},${HEIGHT}`} />
      <polyline class="line" points={points} />
    </svg>
  );
}

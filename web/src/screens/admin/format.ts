/** Sizes and ages in words. */
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Returns a number of bytes with a unit. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

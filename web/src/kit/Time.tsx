/** A time of a commit: relative to now, with the full time in its title. */
const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const short = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

/** Returns a time in microseconds since 1970, in words relative to another one. */
export function relativeTime(microseconds: number, now: number): string {
  const seconds = (microseconds / 1000 - now) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return relative.format(Math.round(seconds / size), unit);
  }
  return relative.format(0, "second");
}

/** Returns a time in microseconds since 1970, to the minute. */
export const shortTime = (microseconds: number): string => short.format(new Date(microseconds / 1000));

/** Returns a time in microseconds since 1970, in full. */
export const fullTime = (microseconds: number): string => full.format(new Date(microseconds / 1000));

export function Time({ at }: { at: number }) {
  const date = new Date(at / 1000);
  return (
    <time class="muted" dateTime={date.toISOString()} title={full.format(date)}>
      {relativeTime(at, Date.now())}
    </time>
  );
}

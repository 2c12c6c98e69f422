/** The icons of the page: 24 × 24 outlines in the colour of the text. They carry no meaning alone. */
const paths = {
  branch: "M6 4v10M6 14a3 3 0 1 0 0 6 3 3 0 0 0 0-6M18 4a3 3 0 1 0 0 6 3 3 0 0 0 0-6M18 10c0 5-8 3-11 5",
  chevron: "M6 9l6 6 6-6",
  close: "M6 6l12 12M18 6L6 18",
  clock: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 7v5l3 2",
  copy: "M9 9h10v11H9zM5 15V4h10",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  graph: "M6 6l12 4M6 6l5 12M18 10l-7 8M6 3.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5M18 7.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5M11 15.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  minus: "M5 12h14",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  pin: "M9 4h6l-1 6 4 4H6l4-4zM12 14v6",
  play: "M7 5l12 7-12 7z",
  plus: "M12 5v14M5 12h14",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14M16 16l5 5",
  stop: "M6 6h12v12H6z",
  theme: "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18",
  user: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8M4 20c1-4 4-5 8-5s7 1 8 5",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon-svg" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

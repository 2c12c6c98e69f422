/** Words of notebooks and saved files. */
export const shownText = {
  views: "View",
  picture: "Picture",
  table: "Table",
  properties: "Properties",
  asOf: "As of",
  asOfHelp: "version, commit, tag or time",
  show: "Show",
  why: "Last changes",
  whyColumns: { property: "Property", actor: "Actor", message: "Message", time: "Time" },
  left: (shown: number, total: number) => `Showing ${shown.toLocaleString()} of ${total.toLocaleString()} nodes`,
  rows: (n: number) => `${n.toLocaleString()} ${n === 1 ? "row" : "rows"}`,
  none: "Nothing to show.",
} as const;

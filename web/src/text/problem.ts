/** The words of explained problems. */
export const problemWords = {
  reasons: "Why the request was denied",
  noReason: "The server gives no further reason.",
  near: "Rules that nearly match:",
  inAdmin: "Explain the decision in Admin",
  moved: (branch: string) => `Commits that moved ${branch} meanwhile:`,
  unknown: "unknown actor",
} as const;

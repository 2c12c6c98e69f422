/** Words of the versions of an entity: the time slider, blame, and old values. */
import { count } from "./en";

export const versionText = {
  slider: "Version",
  versions: (n: number) => count(n, "version", "versions"),
  of: (at: number, n: number) => `Version ${at.toLocaleString()} of ${n.toLocaleString()}`,
  older: "Older version",
  newer: "Newer version",
  now: "Now",
  past: "An older version. Nothing can be changed here.",
  deleted: "It was deleted in this commit.",
  deletedNow: (type: string, id: string) => `${type} ${id} was deleted. Its older versions are still readable.`,
  changedHere: "changed in this version",
  before: "Before",
  created: "set when it was created",
  showCommit: "Show the commit",
  putBack: "Put this value back",
  revert: "Revert that commit …",
  noPutBack: "A value is put back by the key of its node. Revert the commit instead.",
  put: {
    title: (property: string) => `Put back ${property}`,
    explain: (property: string, branch: string) => `A new commit on ${branch} sets ${property} to:`,
    run: "Put back",
    message: (property: string, id: string) => `Put back ${property} of ${id}`,
    done: "The value is back",
    unchanged: "The branch has no such node, or already this value.",
  },
} as const;

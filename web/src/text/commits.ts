/** Words of the dialogs about commits, branches and tags, which several screens open. */
import { count } from "./en";

export const commitText = {
  branch: "Branch",
  name: "Name",
  message: "Message",
  newBranch: {
    title: "New branch",
    from: (start: string) => `The branch starts at ${start}.`,
    help: "Letters, digits, and / . _ - inside, such as review/spring",
    create: "Create branch",
    done: (name: string) => `Created ${name}`,
  },
  newTag: {
    title: "New tag",
    from: (commit: string) => `The tag names commit ${commit}. Its data stays readable until the tag is deleted.`,
    create: "Create tag",
    done: (name: string) => `Created tag ${name}`,
  },
  deleteBranch: {
    title: (name: string) => `Delete branch ${name}?`,
    merged: "Every commit of the branch is also on another branch or has a tag.",
    unmerged: (ahead: number) => `${count(ahead, "commit is", "commits are")} not on main. After a cleanup they are lost.`,
    confirm: (name: string) => `Type ${name} to delete it`,
    run: "Delete branch",
    done: (name: string) => `Deleted ${name}`,
  },
  deleteTag: {
    title: (name: string) => `Delete tag ${name}?`,
    explain: "The commit stays where it is. A cleanup may remove its data if no branch keeps it.",
    run: "Delete tag",
    done: (name: string) => `Deleted tag ${name}`,
  },
  revert: {
    title: "Revert a commit",
    explain: (commit: string, branch: string) => `A new commit on ${branch} undoes ${commit}. Later changes stay.`,
    noBranch: "Choose the branch that gets the new commit.",
    preview: "What the new commit changes",
    nothing: "Nothing is left to undo on this branch.",
    schema: "The schema changes as well:",
    conflicts: (n: number) => `${count(n, "row was", "rows were")} changed again later. Choose which values to keep.`,
    hidden: (n: number) => `${count(n, "further conflict concerns", "further conflicts concern")} rows that you may not read.`,
    resolve: "Values to keep",
    ours: "the present ones",
    theirs: "those before the commit",
    unresolved: "This conflict cannot be settled here: change the rows on the branch first.",
    message: (original: string) => `Revert "${original}"`,
    run: "Revert",
    done: "Reverted",
    notAllowed: (branch: string) => `You may not change ${branch}.`,
  },
} as const;

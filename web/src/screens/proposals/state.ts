/** What the parts of the proposal screens share: rights, the looked-at commit, and actions with their problems. */
import { useState } from "preact/hooks";

import { problemOf, type Problem } from "../../api/problem";
import type { ProposalOutput, ProposalState } from "../../api/proposalTypes";
import { config, me, written } from "../../state/context";
import { link, replace } from "../../state/location";
import { proposalsChanged } from "../../state/proposals";

export const TONES: Readonly<Record<ProposalState, string>> = { draft: "", checking: "warn", blocked: "bad", ready: "good", landing: "warn", landed: "good", closed: "" };

export const isOpen = (proposal: ProposalOutput): boolean => proposal.state !== "landed" && proposal.state !== "closed";

/** Returns those of some actions that the caller lacks on a branch. The server decides; the page explains. */
export function lacking(branch: string, ...actions: readonly string[]): string[] {
  const graph = me.value?.graphs.find((each) => each.graph_id === link.value.graph);
  const allowed = graph?.branches.find((each) => each.branch === branch)?.actions ?? [];
  return config.read_only ? [...actions] : actions.filter((action) => !allowed.includes(action));
}

/** Names of a field: separated by commas, without empty ones. */
export const namesOf = (text: string): string[] => [...new Set(text.split(",").map((each) => each.trim()))].filter((each) => each !== "");

/** Sets parameters of the link; an empty text removes one. */
export function setParams(change: Readonly<Record<string, string | undefined>>): void {
  const params = { ...link.value.params, ...change };
  replace({ params: Object.fromEntries(Object.entries(params).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== "")) });
}

const lookedKey = (id: string): string => `omnigraph.looked ${link.value.graph} ${id}`;

/** The head of the source that was first shown in this tab, and the function that accepts a newer one. */
export function useLooked(proposal: ProposalOutput): [string | null, (commit: string) => void] {
  const [looked, setLooked] = useState(() => sessionStorage.getItem(lookedKey(proposal.id)) ?? proposal.source_head);
  if (looked !== null) sessionStorage.setItem(lookedKey(proposal.id), looked);
  return [looked, setLooked];
}

export interface Attempt {
  readonly running: boolean;
  readonly problem: Problem | null;
  run(action: () => Promise<unknown>): Promise<boolean>;
  clear(): void;
}

/** Runs actions one at a time; after each the proposal is read again. */
export function useAttempt(onDone: () => void): Attempt {
  const [running, setRunning] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  return {
    running,
    problem,
    clear: () => setProblem(null),
    async run(action) {
      setRunning(true);
      setProblem(null);
      try {
        await action();
        return true;
      } catch (error) {
        setProblem(problemOf(error));
        return false;
      } finally {
        setRunning(false);
        proposalsChanged.value += 1;
        onDone();
      }
    },
  };
}

/** Tells every screen that a branch has changed. */
export const tellWritten = (): void => {
  written.value += 1;
};

/** The last request that a policy denied, so that its explanation starts with it. */
import { signal } from "@preact/signals";

export interface Denial {
  readonly action: string;
  readonly branch: string | null;
}

export const lastDenial = signal<Denial | null>(null);

/** Returns the action and branch that the sentence of a denial names; null if it names none. */
export function denialOf(message: string): Denial | null {
  const action = /action '([a-z_]+)'/.exec(message)?.[1];
  if (action === undefined) return null;
  const branch = /with target branch '(.+?)'(?= |$|:)/.exec(message) ?? /on branch '(.+?)'(?= |$|:)/.exec(message);
  return { action, branch: branch?.[1] ?? null };
}

/** Loading of the data of a pane: a skeleton, the value, or the problem; and a boundary for faults of the page itself. */
import { Component, type ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import { problemOf, type Problem } from "../api/problem";
import { text } from "../text/en";
import { ProblemBox } from "./ProblemBox";

export interface Loaded<T> {
  value?: T;
  problem?: Problem;
  /** True while a newer value is on its way. */
  loading: boolean;
  reload(): void;
}

/** Loads a value; `key` names it. Another key cancels the request. Without a key nothing is loaded. */
export function useLoad<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string | null; value?: T; problem?: Problem; loading: boolean }>({ key, loading: true });
  const [tries, setTries] = useState(0);
  useEffect(() => {
    if (key === null) return undefined;
    const abort = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    load(abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) setState({ key, value, loading: false });
      },
      (error: unknown) => {
        const problem = problemOf(error);
        if (problem !== null && !abort.signal.aborted) setState({ key, problem, loading: false });
      },
    );
    return () => abort.abort();
  }, [key, tries]);
  const { key: shown, ...rest } = state;
  const reload = () => setTries((n) => n + 1);
  return shown === key ? { ...rest, reload } : { loading: true, reload };
}

interface Props<T> {
  of: Loaded<T>;
  children(value: T): ComponentChildren;
}

export function Loading<T>({ of, children }: Props<T>) {
  if (of.problem !== undefined) return <ProblemBox problem={of.problem} onRetry={of.reload} />;
  if (of.value === undefined) return <Skeleton />;
  return (
    <Boundary of={of.value}>
      <Shown value={of.value} show={children} />
    </Boundary>
  );
}

/** A value inside its boundary: a fault in it leaves the other panes as they are. */
function Shown<T>({ value, show }: { value: T; show(value: T): ComponentChildren }) {
  return <>{show(value)}</>;
}

export function Skeleton() {
  return (
    <div class="skeleton" role="status" aria-label={text.loading}>
      <span />
      <span />
      <span />
    </div>
  );
}

interface BoundaryProps {
  children: ComponentChildren;
  /** The value that is shown; another one is tried again. */
  of?: unknown;
}

/** Keeps a fault of one pane from blanking the page. */
export class Boundary extends Component<BoundaryProps, { problem: Problem | null }> {
  override state: { problem: Problem | null } = { problem: null };

  override componentDidUpdate(before: BoundaryProps): void {
    if (before.of !== this.props.of && this.state.problem !== null) this.setState({ problem: null });
  }

  static override getDerivedStateFromError(error: unknown): { problem: Problem | null } {
    return { problem: problemOf(error) };
  }

  override render() {
    const { problem } = this.state;
    if (problem === null) return this.props.children;
    return <ProblemBox problem={problem} onRetry={() => this.setState({ problem: null })} />;
  }
}

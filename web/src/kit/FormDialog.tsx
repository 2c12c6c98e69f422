/** A dialog with a form: runs an action, shows its problem, and closes when it succeeded. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { problemOf, type Problem } from "../api/problem";
import { text } from "../text/en";
import { Dialog } from "./Dialog";
import { ProblemBox } from "./ProblemBox";

interface Props {
  title: string;
  /** The words of the button that runs the action. */
  submit: string;
  danger?: boolean;
  wide?: boolean;
  /** True if the fields allow the action. */
  ready: boolean;
  run(): Promise<void>;
  onClose(): void;
  /** Returns true if a problem is handled by the fields. */
  onProblem?(problem: Problem): boolean;
  children: ComponentChildren;
}

export function FormDialog({ title, submit, danger = false, wide = false, ready, run, onClose, onProblem, children }: Props) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [running, setRunning] = useState(false);
  const act = async () => {
    setRunning(true);
    setProblem(null);
    try {
      await run();
      onClose();
    } catch (error) {
      const found = problemOf(error);
      setRunning(false);
      if (found !== null && onProblem?.(found) !== true) setProblem(found);
    }
  };
  return (
    <Dialog title={title} onClose={onClose} wide={wide}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (ready && !running) void act();
        }}
      >
        {children}
        {problem === null ? null : <ProblemBox problem={problem} />}
        <div class="actions">
          <button type="button" class="button" onClick={onClose}>
            {text.cancel}
          </button>
          <button type="submit" class={danger ? "button danger" : "button primary"} disabled={!ready || running}>
            {submit}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface FieldProps {
  label: string;
  value: string;
  onValue(value: string): void;
  help?: string;
  optional?: boolean;
  mono?: boolean;
}

/** A line of text with its label. */
export function Field({ label, value, onValue, help, optional = false, mono = false }: FieldProps) {
  return (
    <label class="field">
      <span class="label">
        {label}
        {optional ? <span class="muted small">{text.query.optional}</span> : null}
      </span>
      <input class={mono ? "input mono" : "input"} autoComplete="off" spellcheck={false} value={value} onInput={(event) => onValue(event.currentTarget.value)} />
      {help === undefined ? null : <span class="help">{help}</span>}
    </label>
  );
}

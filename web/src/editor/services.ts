/** What an editor asks the server: offsets count UTF-16 units, as in JavaScript. */

export interface Candidate {
  text: string;
  kind: string;
  detail: string;
}

export interface Completion {
  start: number;
  end: number;
  candidates: readonly Candidate[];
}

export interface HoverText {
  start: number;
  end: number;
  text: string;
}

export interface EditorDiagnostic {
  from: number;
  to: number;
  severity: "error" | "warning" | "info";
  message: string;
  hint: string | null;
  /** A text that replaces the marked one, if the hint is a replacement. */
  replacement: string | null;
}

export interface EditorServices {
  complete(text: string, offset: number, signal: AbortSignal): Promise<Completion | null>;
  hover(text: string, offset: number, signal: AbortSignal): Promise<HoverText | null>;
  lint(text: string, signal: AbortSignal): Promise<readonly EditorDiagnostic[]>;
}

export interface EditorOptions {
  text: string;
  /** The name of the field, for screen readers. */
  label: string;
  readOnly?: boolean;
  services?: EditorServices;
  onChange?(text: string): void;
  onRun?(): void;
}

export interface EditorHandle {
  readonly text: string;
  setText(text: string): void;
  select(from: number, to: number): void;
  focus(): void;
  destroy(): void;
}

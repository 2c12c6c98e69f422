/** A field for query and schema texts: a plain field until the editor is loaded, then CodeMirror. */
import { effect, type Signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";

import type { EditorHandle, EditorServices } from "./services";

interface Props {
  label: string;
  /** The text; the editor follows it and changes it at once. */
  value: Signal<string>;
  readOnly?: boolean;
  services?: EditorServices;
  onRun?(): void;
  /** Receives the editor, to select a place in it. */
  handle?: { current: EditorHandle | null };
  /** True if the editor takes the focus when it is ready. */
  takesFocus?(): boolean;
}

export function TextEditor(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorHandle | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [ready, setReady] = useState(false);

  useEffect(() => {
    let gone = false;
    void import("./Editor").then(({ mountEditor }) => {
      if (gone || host.current === null) return;
      const { label, value, readOnly = false, services } = latest.current;
      editor.current = mountEditor(host.current, {
        text: value.peek(),
        label,
        readOnly,
        ...(services === undefined ? {} : { services }),
        onChange: (text) => (latest.current.value.value = text),
        onRun: () => latest.current.onRun?.(),
      });
      if (latest.current.handle !== undefined) latest.current.handle.current = editor.current;
      setReady(true);
      if (latest.current.takesFocus?.() === true) editor.current.focus();
    });
    return () => {
      gone = true;
      editor.current?.destroy();
      editor.current = null;
    };
  }, []);

  useEffect(() => effect(() => editor.current?.setText(props.value.value)), [props.value, ready]);

  return (
    <div class="editor">
      {ready ? null : (
        <textarea
          class="mono"
          aria-label={props.label}
          value={props.value.value}
          readOnly={props.readOnly}
          onInput={(event) => (props.value.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) props.onRun?.();
          }}
        />
      )}
      <div class="host" ref={host} />
    </div>
  );
}

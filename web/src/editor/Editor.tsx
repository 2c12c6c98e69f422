/** The editor: CodeMirror in a chunk of its own. `TextEditor` loads it; nothing else imports it. */
import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type CompletionContext } from "@codemirror/autocomplete";
import { history, historyKeymap, indentWithTab, standardKeymap, toggleComment } from "@codemirror/commands";
import { bracketMatching, indentOnInput } from "@codemirror/language";
import { lintGutter, linter, nextDiagnostic, previousDiagnostic, type Diagnostic } from "@codemirror/lint";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";

import { language } from "./language";
import type { EditorDiagnostic, EditorHandle, EditorOptions, EditorServices } from "./services";

const PAUSE_MS = 150;

/** Puts an editor into an element. */
export function mountEditor(host: HTMLElement, options: EditorOptions): EditorHandle {
  const nonce = document.querySelector<HTMLMetaElement>("meta[name=nonce]")?.nonce ?? "";
  const view = new EditorView({
    parent: host,
    state: EditorState.create({ doc: options.text, extensions: [EditorView.cspNonce.of(nonce), ...extensions(options)] }),
  });
  return {
    get text() {
      return view.state.doc.toString();
    },
    setText(text) {
      if (text !== view.state.doc.toString()) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    select(from, to) {
      const length = view.state.doc.length;
      view.dispatch({ selection: { anchor: Math.min(from, length), head: Math.min(to, length) }, scrollIntoView: true });
      view.focus();
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

function extensions(options: EditorOptions): Extension[] {
  const run = () => {
    options.onRun?.();
    return true;
  };
  const readOnly = options.readOnly === true;
  return [
    lineNumbers(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    language,
    EditorView.lineWrapping,
    EditorState.readOnly.of(readOnly),
    EditorState.tabSize.of(4),
    EditorView.contentAttributes.of({ "aria-label": options.label, spellcheck: "false", tabindex: "0" }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) options.onChange?.(update.state.doc.toString());
    }),
    keymap.of([
      { key: "Mod-Enter", run },
      { key: "Tab", run: acceptCompletion },
      ...completionKeymap,
      ...closeBracketsKeymap,
      ...standardKeymap,
      { key: "Mod-/", run: toggleComment },
      ...historyKeymap,
      { key: "F8", run: nextDiagnostic, shift: previousDiagnostic },
      indentWithTab,
    ]),
    ...(options.services === undefined ? [] : serviceExtensions(options.services)),
  ];
}

function serviceExtensions(services: EditorServices): Extension[] {
  return [
    autocompletion({ override: [(context) => complete(services, context)], activateOnTypingDelay: PAUSE_MS, icons: false }),
    linter((view) => lint(services, view), { delay: PAUSE_MS }),
    lintGutter(),
    hoverTooltip((view, position) => hover(services, view, position)),
  ];
}

async function complete(services: EditorServices, context: CompletionContext) {
  const before = context.matchBefore(/[$@]?\w*/);
  if (!context.explicit && (before === null || before.from === before.to) && !/[.:{($]$/.test(context.state.sliceDoc(0, context.pos))) return null;
  const abort = new AbortController();
  context.addEventListener("abort", () => abort.abort());
  const found = await services.complete(context.state.doc.toString(), context.pos, abort.signal).catch(() => null);
  if (found === null || found.candidates.length === 0) return null;
  return {
    from: found.start,
    to: found.end,
    options: found.candidates.map((each) => ({ label: each.text, detail: each.detail, type: each.kind })),
  };
}

async function lint(services: EditorServices, view: EditorView): Promise<Diagnostic[]> {
  const text = view.state.doc.toString();
  if (text.trim() === "") return [];
  const found = await services.lint(text, new AbortController().signal).catch(() => []);
  return found.map((each) => diagnostic(each, text.length));
}

function diagnostic(found: EditorDiagnostic, length: number): Diagnostic {
  const { replacement } = found;
  return {
    from: Math.min(found.from, length),
    to: Math.min(Math.max(found.to, found.from), length),
    severity: found.severity,
    message: found.hint === null ? found.message : `${found.message}\n${found.hint}`,
    actions:
      replacement === null
        ? []
        : [{ name: replacement, apply: (view, from, to) => view.dispatch({ changes: { from, to, insert: replacement } }) }],
  };
}

async function hover(services: EditorServices, view: EditorView, position: number) {
  const found = await services.hover(view.state.doc.toString(), position, new AbortController().signal).catch(() => null);
  if (found === null) return null;
  return {
    pos: found.start,
    end: found.end,
    create() {
      const dom = document.createElement("div");
      dom.className = "editor-hover";
      dom.textContent = found.text;
      return { dom };
    },
  };
}

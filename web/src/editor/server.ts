/** The services of an editor, answered by the server at the place of the current link. */
import type { LintOutput } from "../api/types";
import type { Language } from "../source/source";
import { place, source } from "../state/context";
import type { EditorDiagnostic, EditorServices } from "./services";

/** Returns the services of a language; `onLint` receives each report and the text that it is about. */
export function serverServices(language: Language, onLint?: (typed: string, report: LintOutput) => void): EditorServices {
  return {
    async complete(typed, offset, signal) {
      const here = place.value;
      if (here === null) return null;
      const found = await source.complete(here, typed, offset, language, signal);
      return { ...found, candidates: found.candidates.map((each) => ({ text: each.text, kind: each.kind, detail: each.type ?? each.description ?? "" })) };
    },
    async hover(typed, offset, signal) {
      const here = place.value;
      if (here === null) return null;
      const { hover } = await source.hover(here, typed, offset, language, signal);
      return hover === null ? null : { start: hover.start, end: hover.end, text: hover.description === null ? hover.title : `${hover.title}\n${hover.description}` };
    },
    async lint(typed, signal) {
      const here = place.value;
      if (here === null) return [];
      const found = await source.lint(here, typed, language, signal);
      onLint?.(typed, found);
      return diagnosticsOf(found);
    },
  };
}

/** Returns the places of faults of queries and of the whole text; a hint that names a replacement becomes one. */
export function diagnosticsOf(report: LintOutput): EditorDiagnostic[] {
  return [...report.results, ...report.findings].flatMap((result) =>
    (result.diagnostics ?? []).map((each) => ({
      from: each.span?.start ?? 0,
      to: each.span?.end ?? 0,
      severity: "severity" in result && result.severity !== "error" ? ("warning" as const) : ("error" as const),
      message: each.message,
      hint: each.hint ?? null,
      replacement: /^did you mean '([^']+)'\?$/.exec(each.hint ?? "")?.[1] ?? null,
    })),
  );
}

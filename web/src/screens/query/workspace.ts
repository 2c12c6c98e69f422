/** The state of the query workspace: text, parameters, the running request and its result. */
import { computed, signal } from "@preact/signals";

import { isLostRace, problemOf, Problem } from "../../api/problem";
import { joinPages, type ResultTable } from "../../api/result";
import type { ChangeOutput, ExplainOutput, LintedQueryOutput } from "../../api/types";
import type { Place, QueryRequest } from "../../source/source";
import { refreshPlace, source, written } from "../../state/context";
import { announce } from "../../kit/announce";
import { faultText } from "../../kit/Field";
import { valueOf } from "../../kit/fields";
import { NODES_MAX } from "../../picture/build";
import { link } from "../../state/location";
import { text as words } from "../../text/en";
import { remember } from "./history";
import { headsOf, looksLikeChange, withLimit } from "./params";

/** The rows of a picture: one more than the nodes that it shows at most. */
const PICTURE_ROWS = NODES_MAX + 1;

export type View = "table" | "picture" | "json" | "plan";

export type Outcome =
  | { readonly kind: "rows"; readonly request: QueryRequest; readonly place: Place; readonly pages: readonly ResultTable[]; /** True if only the rows of a picture were read. */ readonly cut: boolean }
  | { readonly kind: "change"; readonly change: ChangeOutput }
  | { readonly kind: "problem"; readonly problem: Problem };

export class Workspace {
  readonly text = signal("");
  /** The name of the stored query that the text came from. */
  readonly storedName = signal<string | null>(null);
  /** The chosen query of a text with several. */
  readonly chosen = signal<string | null>(null);
  readonly values = signal<Readonly<Record<string, string>>>({});
  readonly message = signal("");
  readonly outcome = signal<Outcome | null>(null);
  readonly plan = signal<{ explained: ExplainOutput; measured: boolean } | { problem: Problem } | null>(null);
  readonly running = signal<"read" | "change" | "plan" | "more" | null>(null);
  readonly linted = signal<readonly LintedQueryOutput[]>([]);
  /** The part of the link that names the query, as it was last read or written. */
  linkKey = "";
  /** True once the workspace was filled from the link. */
  linkRead = false;
  private abort = new AbortController();

  readonly heads = computed(() => headsOf(this.text.value));
  readonly head = computed(() => this.heads.value.find((head) => head.name === this.chosen.value) ?? this.heads.value[0] ?? null);
  readonly isChange = computed(() => {
    const name = this.head.value?.name;
    const checked = this.linted.value.find((each) => each.name === name);
    return checked === undefined ? looksLikeChange(this.text.value) : checked.kind === "mutation";
  });
  readonly table = computed(() => {
    const outcome = this.outcome.value;
    if (outcome?.kind !== "rows") return null;
    const table = joinPages(outcome.pages);
    return outcome.cut ? { ...table, next: "" } : table;
  });
  /** The faults of fields, by parameter. */
  readonly faults = computed(() => {
    const faults: Record<string, string> = {};
    for (const { name, type } of this.head.value?.params ?? []) {
      const made = valueOf(type, this.values.value[name] ?? "");
      if ("fault" in made) faults[name] = faultText(made.fault);
    }
    return faults;
  });

  setValue(name: string, value: string): void {
    this.values.value = { ...this.values.value, [name]: value };
  }

  request(): QueryRequest {
    const head = this.head.value;
    const params: Record<string, unknown> = {};
    for (const { name, type } of head?.params ?? []) {
      const made = valueOf(type, this.values.value[name] ?? "");
      if ("value" in made) params[name] = made.value;
    }
    return { text: this.text.value, name: head !== null && this.heads.value.length > 1 ? head.name : null, params };
  }

  get canRun(): boolean {
    return this.text.value.trim() !== "" && Object.keys(this.faults.value).length === 0;
  }

  /** Runs a read at the newest commit of the ref; of a picture, only as many rows as it can show. */
  async read(): Promise<void> {
    const request = this.request();
    const limited = link.value.params["view"] === "picture" ? withLimit(request.text, PICTURE_ROWS) : null;
    await this.work("read", async (signal) => {
      const place = await refreshPlace(signal);
      const page = await source.query(place, limited === null ? request : { ...request, text: limited }, null, signal);
      this.outcome.value = { kind: "rows", request, place, pages: [page], cut: limited !== null && page.rowCount === PICTURE_ROWS };
      this.remember(place, page.rowCount);
      announce(words.query.done(page.rowCount));
    });
  }

  /** Reads the next page of the result; of a cut one, the whole. */
  async more(): Promise<void> {
    const outcome = this.outcome.value;
    const next = this.table.value?.next ?? null;
    if (outcome?.kind !== "rows" || next === null || this.running.value !== null) return;
    await this.work("more", async (signal) => {
      const page = await source.query(outcome.place, outcome.request, outcome.cut ? null : next, signal);
      this.outcome.value = { ...outcome, pages: outcome.cut ? [page] : [...outcome.pages, page], cut: false };
    });
  }

  async change(place: Place): Promise<void> {
    await this.work("change", async (signal) => {
      const change = await source.mutate(place, this.request(), this.message.value, signal).catch((error: unknown) => {
        // The next try is made to the new head.
        if (error instanceof Problem && isLostRace(error)) written.value += 1;
        throw error;
      });
      this.outcome.value = { kind: "change", change };
      this.message.value = "";
      this.remember(place, null);
      written.value += 1;
    });
  }

  async explain(place: Place, measured: boolean): Promise<void> {
    this.plan.value = null;
    await this.work("plan", async (signal) => {
      this.plan.value = { explained: await source.explain(place, this.request(), measured, signal), measured };
    });
  }

  /** Shows a failure in the place of the result. */
  fail(error: unknown): void {
    const problem = problemOf(error);
    if (problem !== null) this.outcome.value = { kind: "problem", problem };
  }

  stop(): void {
    this.abort.abort();
    this.running.value = null;
  }

  private remember(place: Place, rows: number | null): void {
    const name = this.head.value?.name ?? null;
    remember({ graph: place.graph, at: Date.now(), text: this.text.value, name, values: this.values.value, rows });
  }

  private async work(kind: "read" | "change" | "plan" | "more", run: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.abort.abort();
    const abort = (this.abort = new AbortController());
    this.running.value = kind;
    try {
      await run(abort.signal);
    } catch (error) {
      const problem = problemOf(error);
      if (problem !== null && !abort.signal.aborted) {
        if (kind === "plan") this.plan.value = { problem };
        else this.outcome.value = { kind: "problem", problem };
      }
    } finally {
      if (this.abort === abort) this.running.value = null;
    }
  }
}

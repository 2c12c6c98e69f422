/** Compare two refs: `diff?from=<ref>&to=<ref>`. Both are resolved to commits once, so that every part shows the same. */
import { useMemo } from "preact/hooks";

import type { DiffSummaryOutput } from "../../api/reviewTypes";

import { Icon } from "../../kit/Icon";
import { Loading, Skeleton, useLoad } from "../../kit/load";
import { Menu } from "../../kit/Menu";
import { sumOf, totalOf } from "../../review/change";
import { CountBlocks, Counts } from "../../review/Counts";
import { DiffView, type DiffParams } from "../../review/DiffView";
import { copiesOfDiff } from "../../review/copy";
import { commitReader } from "../../review/reader";
import { RefPicker, refName } from "../../review/RefPicker";
import type { Place } from "../../source/source";
import { config, me, place, source } from "../../state/context";
import { MAIN } from "../../state/link";
import { go, href, link, replace } from "../../state/location";
import { text } from "../../text/review";
import { findScreen } from "../registry";

export default function Diff() {
  const here = place.value;
  const { graph, ref, params } = link.value;
  const to = params["to"] ?? ref;
  const from = params["from"] ?? MAIN;
  // The head of a branch is read again when something was written; a pinned place stays.
  const loaded = useLoad(here === null ? null : JSON.stringify([graph, from, to, here.commit]), async (signal) => {
    const [before, after] = await Promise.all([source.resolve(graph, from, signal), source.resolve(graph, to, signal)]);
    return { before, after };
  });
  if (here === null) return <Skeleton />;
  return (
    <>
      <h1 class="visually-hidden">{text.diff.title}</h1>
      <Loading of={loaded}>{({ before, after }) => <Comparison before={before} after={after} />}</Loading>
    </>
  );
}

function setParams(change: Readonly<Record<string, string | undefined>>): void {
  const params = { ...link.value.params, ...change };
  replace({ params: Object.fromEntries(Object.entries(params).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== "")) });
}

function Comparison({ before, after }: { before: Place; after: Place }) {
  const { params } = link.value;
  const base = params["since"] !== "both";
  const points = { graph: before.graph, from: before.commit, to: after.commit, base };
  const key = JSON.stringify(points);
  const reader = useMemo(() => commitReader(points, after.branch), [key]);
  const catalog = useLoad(after.commit, (signal) => source.catalog(after, signal));
  const summary = useLoad(key, (signal) => reader.summary(signal));
  return (
    <div class="diff-screen">
      <DiffHead before={before} after={after} base={base} summary={summary.value} />
      <DiffView reader={reader} catalog={catalog.value} params={params as DiffParams} onParams={setParams} />
    </div>
  );
}

function DiffHead({ before, after, base, summary }: { before: Place; after: Place; base: boolean; summary: DiffSummaryOutput | undefined }) {
  const { params } = link.value;
  const choose = (change: { from?: string; to?: string }) => go({ params: { ...(params["since"] === undefined ? {} : { since: params["since"] }), from: before.ref, to: after.ref, ...change } });
  const total = summary === undefined ? null : totalOf(summary.tables);
  return (
    <header class="card diff-head">
      <div class="row wrap">
        <RefPicker graph={before.graph} label={text.diff.from} value={before.ref} onChoose={(from) => choose({ from })} />
        <button type="button" class="button plain icon" aria-label={text.diff.swap} title={text.diff.swap} onClick={() => choose({ from: after.ref, to: before.ref })}>
          <span aria-hidden="true">⇄</span>
        </button>
        <RefPicker graph={after.graph} label={text.diff.to} value={after.ref} onChoose={(to) => choose({ to })} />
      </div>
      <div class="row wrap diff-counts" aria-live="polite">
        {total === null ? (
          <span class="muted">…</span>
        ) : (
          <>
            <strong class="number">{text.diff.changes(sumOf(total))}</strong>
            <Counts counts={total} />
            <CountBlocks counts={total} />
          </>
        )}
        <SinceMenu after={after} base={base} summary={summary} />
      </div>
      <div class="row wrap push">
        <Menu label={text.diff.copyAs} button={<Icon name="copy" />} class="button plain" end items={copiesOfDiff(source, before, after, base, () => pinnedLink(before, after))} />
        <MergeButtons before={before} after={after} />
      </div>
    </header>
  );
}

/** Returns the address of the same comparison between commits. */
function pinnedLink(before: Place, after: Place): string {
  const params = { ...link.value.params, from: `@${before.commit}`, to: `@${after.commit}` };
  return new URL(href({ params }), location.href).href;
}

function SinceMenu({ after, base, summary }: { after: Place; base: boolean; summary: DiffSummaryOutput | undefined }) {
  const shown = base ? text.diff.sinceCommit(summary?.from_commit_id ?? "") : text.diff.bothShort;
  return (
    <Menu
      label={`${text.diff.since}: ${shown}`}
      class="button plain small"
      button={<span class="muted">{shown}</span>}
      items={[
        { label: text.diff.byBranch(refName(after.ref)), checked: base, run: () => setParams({ since: "", row: "" }) },
        { label: text.diff.bothSides, checked: !base, run: () => setParams({ since: "both", row: "" }) },
      ]}
    />
  );
}

/** Propose and Merge: shown with a reason where they cannot be taken. */
function MergeButtons({ before, after }: { before: Place; after: Place }) {
  const branches = before.branch !== null && after.branch !== null && before.branch !== after.branch;
  const target = before.branch ?? "";
  const graph = me.value?.graphs.find((each) => each.graph_id === before.graph);
  const mayMerge = graph?.branches.find((each) => each.branch === target)?.actions.includes("branch_merge") ?? false;
  const reason = !branches ? text.diff.mergeNeedsBranches : !mayMerge ? text.diff.mayNotMerge(target) : config.read_only ? text.merge.readOnly : null;
  const canPropose = findScreen("proposals") !== undefined && branches;
  return (
    <>
      {canPropose ? (
        <a class="button" href={href({ ref: target, screen: "proposals", path: [], params: { new: "1", source: after.branch ?? "", target } })}>
          {text.diff.propose}
        </a>
      ) : null}
      {reason === null ? (
        <a class="button primary" href={href({ ref: target, screen: "merge", path: [], params: { source: after.branch ?? "", target } })}>
          {text.diff.merge}
        </a>
      ) : (
        <button type="button" class="button primary" aria-disabled="true" title={reason}>
          {text.diff.merge}
        </button>
      )}
    </>
  );
}


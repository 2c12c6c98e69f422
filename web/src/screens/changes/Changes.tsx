/** The change feed of a branch, live: commits as cards, filters, pause, replay, and code that does the same. */
import { useEffect, useRef, useState } from "preact/hooks";

import { copyText } from "../../kit/announce";
import { Icon } from "../../kit/Icon";
import { Skeleton, useLoad } from "../../kit/load";
import { Menu } from "../../kit/Menu";
import { ProblemBox } from "../../kit/ProblemBox";
import type { FeedRequest } from "../../source/feed";
import type { Place } from "../../source/source";
import { place, source } from "../../state/context";
import { MAIN } from "../../state/link";
import { href, link, replace } from "../../state/location";
import { feedText as text } from "../../text/changes";
import { FeedCard } from "./Card";
import { cardsOf, KEPT } from "./cards";
import { baselineCommand, commandConsumer, curlConsumer, pythonConsumer } from "./consumer";
import { useFeed, type Feed } from "./feed";
import { Replay } from "./Replay";

const ANNOUNCED_MS = 10_000;
const OPS = ["insert", "update", "delete"] as const;

export default function Changes() {
  const here = place.value;
  return (
    <div class="stack feed-screen">
      <h1 class="visually-hidden">{text.title}</h1>
      {here === null ? <Skeleton /> : here.branch === null ? <NoBranch /> : <BranchFeed here={here} branch={here.branch} />}
    </div>
  );
}

function NoBranch() {
  return (
    <div class="card empty">
      <strong>{text.noBranch}</strong>
      <span>{text.noBranchHint}</span>
      <a class="button" href={href({ ref: MAIN })}>
        {text.followMain}
      </a>
    </div>
  );
}

function BranchFeed({ here, branch }: { here: Place; branch: string }) {
  const { graph, params } = link.value;
  const op = OPS.find((each) => each === params["op"]);
  const request: FeedRequest = { graph, branch, type: params["type"], op, start: params["start"] ?? "now" };
  const feed = useFeed(request);
  return (
    <>
      <Controls here={here} request={request} feed={feed} />
      {feed.problem === null ? null : <FeedProblem feed={feed} branch={branch} />}
      <Cards feed={feed} request={request} />
    </>
  );
}

function change(changed: Readonly<Record<string, string>>): void {
  replace({ params: { ...link.value.params, ...changed } });
}

function Controls({ here, request, feed }: { here: Place; request: FeedRequest; feed: Feed }) {
  const catalog = useLoad(`${here.graph} ${here.commit}`, (signal) => source.catalog(here, signal)).value;
  const types = [...(catalog?.nodes ?? []), ...(catalog?.edges ?? [])].map((type) => type.name);
  const listed = request.type === undefined || types.includes(request.type) ? types : [...types, request.type];
  const words = { live: text.live(request.branch), connecting: text.connecting, paused: text.paused, stopped: text.stopped };
  return (
    <div class="card feed-controls row wrap">
      <span class="feed-state" data-state={feed.state} role="status">
        {words[feed.state]}
      </span>
      <button type="button" class="button" onClick={() => feed.pause(!feed.isPaused)}>
        <Icon name={feed.isPaused ? "play" : "stop"} />
        {feed.isPaused ? text.resume : text.pause}
      </button>
      <label class="row">
        <span class="muted">{text.type}</span>
        <select class="select" value={request.type ?? ""} onChange={(event) => change({ type: event.currentTarget.value })}>
          <option value="">{text.anyType}</option>
          {listed.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <fieldset class="row plain-set">
        <legend class="visually-hidden">{text.op}</legend>
        <div class="segmented">
          {["", ...OPS].map((op) => (
            <label key={op}>
              <input type="radio" name="op" checked={(request.op ?? "") === op} onChange={() => change({ op })} />
              {op === "" ? text.anyOp : text.ops[op as (typeof OPS)[number]]}
            </label>
          ))}
        </div>
      </fieldset>
      <span class="grow" />
      <Replay here={here} branch={request.branch} start={request.start} onStart={(start) => change({ start: start === "now" ? "" : start })} />
      <Menu
        end
        class="button"
        label={text.copy}
        button={text.copy}
        items={[
          { label: text.copies.python, run: () => void copyText(pythonConsumer(source.address, request)) },
          { label: text.copies.curl, run: () => void copyText(curlConsumer(source.address, source.routePath(request.graph, "changes/stream"), request)) },
          { label: text.copies.command, run: () => void copyText(commandConsumer(source.address, request)) },
        ]}
      />
    </div>
  );
}

/** A refused stream; a gap says what a consumer does. */
function FeedProblem({ feed, branch }: { feed: Feed; branch: string }) {
  const problem = feed.problem;
  if (problem === null) return null;
  return (
    <div class="stack tight">
      <ProblemBox problem={problem} />
      {problem.code === "change_feed_gap" ? (
        <div class="card pad stack tight">
          <p>{text.gap}</p>
          <pre class="old-value">{baselineCommand(branch)}</pre>
          <div class="row wrap">
            <button type="button" class="button" onClick={() => void copyText(baselineCommand(branch))}>
              {text.copyCommand}
            </button>
            <button type="button" class="button primary" onClick={() => change({ start: "" })}>
              {text.gapNow}
            </button>
          </div>
        </div>
      ) : null}
    </div>
  );
}

function Cards({ feed, request }: { feed: Feed; request: FeedRequest }) {
  const filtered = request.type !== undefined || request.op !== undefined;
  const blocks = filtered ? feed.blocks.filter((block) => block.changes.length > 0) : feed.blocks;
  const cards = cardsOf(blocks);
  return (
    <>
      <Arrivals count={blocks.length} />
      {cards.length === 0 && feed.problem === null ? (
        <div class="card empty">
          <strong>{text.waiting(request.branch)}</strong>
          <span>{text.waitingHint}</span>
        </div>
      ) : (
        <ol class="feed" aria-label={text.list}>
          {cards.map((card) => (
            <li key={card.blocks[0]?.cause.graph_commit_id}>
              <FeedCard card={card} />
            </li>
          ))}
        </ol>
      )}
      {feed.blocks.length >= KEPT ? <p class="muted">{text.kept(KEPT)}</p> : null}
    </>
  );
}

/** Tells screen readers about new commits, at most once in ten seconds. */
function Arrivals({ count }: { count: number }) {
  const [said, setSaid] = useState("");
  const state = useRef({ told: count, at: 0, latest: count });
  state.current.latest = count;
  useEffect(() => {
    if (count < state.current.told) state.current.told = count;
    const wait = Math.max(0, state.current.at + ANNOUNCED_MS - Date.now());
    const timer = setTimeout(() => {
      const { latest, told } = state.current;
      if (latest > told) setSaid(text.arrived(latest - told));
      state.current = { told: latest, at: latest > told ? Date.now() : state.current.at, latest };
    }, wait);
    return () => clearTimeout(timer);
  }, [count]);
  return (
    <div class="visually-hidden" role="status" aria-live="polite">
      {said}
    </div>
  );
}

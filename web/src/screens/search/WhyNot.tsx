/** Why a node is not found: its rank, or the condition that drops it. */
import { useState } from "preact/hooks";

import type { RankOfOutput } from "../../api/types";
import { Loading, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import type { Place, SearchRequest } from "../../source/source";
import { source } from "../../state/context";
import { go, href, link } from "../../state/location";
import { words } from "../../text/search";
import { Shares } from "./Why";

export function WhyNot({ here, request }: { here: Place; request: SearchRequest }) {
  const asked = link.value.params["not"] ?? "";
  const [typed, setTyped] = useState(asked);
  return (
    <section class="card why-not" aria-label={words.whyNot}>
      <form
        class="row wrap body"
        onSubmit={(event) => {
          event.preventDefault();
          go({ params: { ...link.value.params, not: typed.trim() } });
        }}
      >
        <strong>{words.whyNot}</strong>
        <input class="input" aria-label={words.whyNotLabel} placeholder={words.whyNotPlaceholder} autoComplete="off" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
        <button type="submit" class="button">
          {words.whyNotAsk}
        </button>
      </form>
      {asked === "" ? null : <Answer here={here} request={{ ...request, limit: 1, rank_of: asked }} />}
    </section>
  );
}

function Answer({ here, request }: { here: Place; request: SearchRequest }) {
  const loaded = useLoad(`${here.graph} ${here.commit} ${JSON.stringify(request)}`, (signal) => source.search(here, request, signal));
  return (
    <div class="body stack tight" aria-live="polite">
      <Loading of={loaded}>{(answer) => (answer.rank_of ?? []).map((each) => <Rank key={each.type ?? ""} of={each} />)}</Loading>
    </div>
  );
}

function Rank({ of }: { of: RankOfOutput }) {
  return (
    <>
      <p class="row wrap">
        <span class={of.rank === null ? "badge warn" : "badge good"}>{of.rank === null ? words.whyNotReason[of.reason ?? "not_found"] : words.whyNotRank(of.rank)}</span>
        {of.type === null ? null : (
          <a href={href({ screen: "entity", path: [of.type, of.id], params: {} })}>
            {of.type} <Plain text={of.id} />
          </a>
        )}
        <span>
          <Plain text={of.message} />
        </span>
      </p>
      {of.why.length === 0 ? null : <Shares shares={of.why} score={null} />}
    </>
  );
}

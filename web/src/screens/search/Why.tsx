/** Why a hit has its rank: the ranking tables with terms and weights, the filters that it passes, its place in the graph. */
import type { RankerShareOutput, SearchHitOutput } from "../../api/types";
import { Loading, useLoad } from "../../kit/load";
import { Plain } from "../../kit/Plain";
import { nodeLabel, Value } from "../../kit/Value";
import type { Place } from "../../source/source";
import { source } from "../../state/context";
import { href } from "../../state/location";
import { words } from "../../text/search";
import type { Settings } from "./settings";

const AROUND = 6;

export function Why({ id, hit, label, settings, here }: { id: string; hit: SearchHitOutput; label: string; settings: Settings; here: Place }) {
  return (
    <section class="why" id={id} aria-label={words.whyOf(label)}>
      <Shares shares={hit.why} score={hit.score} />
      <dl class="dl small">
        <dt>{words.passes}</dt>
        <dd>
          <Passed hit={hit} settings={settings} />
        </dd>
        <dt>{words.around}</dt>
        <dd>
          <Around hit={hit} here={here} label={label} />
        </dd>
      </dl>
    </section>
  );
}

/** One row for each ranking: rank, score, terms with their weights, and its share of the fused score as a bar. */
export function Shares({ shares, score }: { shares: readonly RankerShareOutput[]; score: number | null }) {
  const total = shares.reduce((sum, each) => sum + each.share, 0);
  return (
    <>
      <div class="scroll-x" tabIndex={0} role="region" aria-label={words.ranking}>
        <table class="plain-table small">
          <thead>
            <tr>
              <th scope="col">{words.ranking}</th>
              <th scope="col" class="number">
                {words.place}
              </th>
              <th scope="col">{words.score}</th>
              <th scope="col">{words.shareOf}</th>
              <th scope="col">{words.terms}</th>
            </tr>
          </thead>
          <tbody>
            {shares.map((share) => (
              <tr key={share.by}>
                <th scope="row">{words.rank[share.by]}</th>
                <td class="number">{share.rank === null ? "–" : `#${share.rank.toLocaleString()}`}</td>
                <td>{share.score === null || share.property === null ? <span class="muted">{words.notRanked[share.by]}</span> : words.scores[share.by](share.score.toFixed(3), share.property)}</td>
                <td>
                  <ShareBar part={total === 0 ? 0 : share.share / total} share={share.share} />
                </td>
                <td>
                  <Terms share={share} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {score === null ? null : <p class="muted small">{shares.length > 1 ? words.fused(score.toFixed(4)) : words.single}</p>}
    </>
  );
}

function ShareBar({ part, share }: { part: number; share: number }) {
  return (
    <span class="bar-cell">
      <span class="share-track" aria-hidden="true">
        <span style={{ inlineSize: `${Math.round(part * 100)}%` }} />
      </span>
      <span class="number">
        {Math.round(part * 100)} % ({share.toFixed(4)})
      </span>
    </span>
  );
}

function Terms({ share }: { share: RankerShareOutput }) {
  const terms = share.terms ?? [];
  const most = Math.max(0.001, ...terms.map((term) => term.weight));
  return (
    <span class="row wrap terms">
      {terms.map((term) => (
        <span class="term" key={term.term} title={term.term}>
          <span class="weight" aria-hidden="true" style={{ inlineSize: `${Math.round((term.weight / most) * 100)}%` }} />
          <Plain text={words.term(term.word, term.weight.toFixed(2))} />
        </span>
      ))}
    </span>
  );
}

/** Each filter with the value that satisfies it. */
function Passed({ hit, settings }: { hit: SearchHitOutput; settings: Settings }) {
  const given = settings.where.filter((each) => each.value !== "");
  if (given.length === 0) return <span class="muted">{words.passesNone}</span>;
  return (
    <ul class="plain-list">
      {given.map((each, at) => (
        <li key={at}>
          ✓ <code>{`${each.property} ${each.operator} ${each.value}`}</code> <span class="muted">←</span> <Value value={hit.data[each.property]} />
        </li>
      ))}
    </ul>
  );
}

/** The paths of one edge through the hit. */
function Around({ hit, here, label }: { hit: SearchHitOutput; here: Place; label: string }) {
  const loaded = useLoad(`${here.graph} ${here.commit} ${hit.type} ${hit.id}`, (signal) => source.neighbors(here, hit.type, hit.id, { limit: AROUND }, signal));
  return (
    <Loading of={loaded}>
      {({ neighbors }) =>
        neighbors.length === 0 ? (
          <span class="muted">{words.aroundNone}</span>
        ) : (
          <ul class="plain-list">
            {neighbors.map((each) => {
              const other = (
                <a href={href({ screen: "entity", path: [each.type, each.id], params: {} })}>
                  <Plain text={nodeLabel(each.data, each.id)} />
                </a>
              );
              const self = <Plain text={label} />;
              return (
                <li key={each.edge_id} class="cut">
                  {each.direction === "in" ? other : self} <span class="muted">→ {each.edge} →</span> {each.direction === "in" ? self : other}
                </li>
              );
            })}
          </ul>
        )
      }
    </Loading>
  );
}

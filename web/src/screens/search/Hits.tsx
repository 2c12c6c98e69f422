/** The hits of one side: name, snippet, ranks, and the explanation of the rank that the link names. */
import type { CatalogOutput, RankerShareOutput, SearchHitOutput, SearchOutput } from "../../api/types";
import { Icon } from "../../kit/Icon";
import { kindOf } from "../../kit/kinds";
import { Plain } from "../../kit/Plain";
import { nodeLabel } from "../../kit/Value";
import type { Place, SearchRequest } from "../../source/source";
import { go, href, link } from "../../state/location";
import { words } from "../../text/search";
import { moveOf, paramsOf, type Settings, type Side } from "./settings";
import { markedParts } from "./snippet";
import { Why } from "./Why";

/** The hits of the other side of a comparison. */
export interface Against {
  side: Side;
  hits: readonly SearchHitOutput[];
}

interface Props {
  answer: SearchOutput;
  text: string;
  request: SearchRequest;
  settings: Settings;
  side: Side;
  catalog: CatalogOutput | undefined;
  here: Place;
  against: Against | undefined;
  more(): void;
}

export const keyOf = (hit: { type: string; id: string }): string => `${hit.type}/${hit.id}`;

export function Hits(props: Props) {
  const { answer, text, settings, side, catalog, more } = props;
  const total = Object.values(answer.counts).reduce((sum, count) => sum + count, 0);
  return (
    <div class="stack">
      <div class="row wrap" aria-live="polite">
        <strong>{words.found(total)}</strong>
        {Object.entries(answer.counts).map(([type, count]) => (
          <a
            key={type}
            class={`chip kind-${kindOf(catalog, type)}`}
            href={href({ params: { ...link.value.params, ...paramsOf({ ...settings, type: settings.type === type ? "" : type }, side) } })}
            aria-current={settings.type === type ? "true" : undefined}
          >
            <span class="dot" />
            {type} <span class="number">{count.toLocaleString()}</span>
          </a>
        ))}
      </div>
      {answer.notes.map((note) => (
        <p class="muted small" key={note}>
          <Plain text={note} />
        </p>
      ))}
      {answer.hits.length === 0 ? (
        <div class="card empty">
          <strong>
            <Plain text={words.none(text)} />
          </strong>
          <span>{words.noneHint}</span>
        </div>
      ) : (
        <ol class="card list hits">
          {answer.hits.map((hit) => (
            <Hit key={keyOf(hit)} hit={hit} {...props} />
          ))}
        </ol>
      )}
      {answer.next === undefined ? null : (
        <button type="button" class="button" onClick={more}>
          {words.more}
        </button>
      )}
    </div>
  );
}

function Hit({ hit, catalog, against, here, settings, side }: Props & { hit: SearchHitOutput }) {
  const label = nodeLabel(hit.data, hit.id);
  const { params } = link.value;
  const open = params["why"] === keyOf(hit);
  const id = `why-${side}-${hit.rank}`;
  return (
    <li class={`hit kind-${kindOf(catalog, hit.type)}`}>
      <div class="row baseline">
        <span class="muted number rank">{hit.rank}</span>
        {against === undefined ? null : <Move hit={hit} against={against} />}
        <a class="cut hit-name" href={href({ screen: "entity", path: [hit.type, hit.id], params: {} })}>
          <Plain text={label} />
        </a>
        <span class="chip">
          <span class="dot" />
          {hit.type}
        </span>
      </div>
      <Snippet hit={hit} />
      <div class="row wrap">
        <p class="muted small grow">{hit.why.filter((share) => share.rank !== null).map(shareText).join(" · ")}</p>
        <button type="button" class="button small plain" aria-expanded={open} aria-controls={open ? id : undefined} onClick={() => go({ params: { ...params, why: open ? "" : keyOf(hit) } })}>
          {words.why}
          <Icon name="chevron" />
          <span class="visually-hidden">
            <Plain text={` ${label}`} />
          </span>
        </button>
      </div>
      {open ? <Why id={id} hit={hit} label={label} settings={settings} here={here} /> : null}
    </li>
  );
}

/** The move of a hit from A to B, as a sign with its meaning. */
function Move({ hit, against }: { hit: SearchHitOutput; against: Against }) {
  if (against.side === "a") {
    const gone = moveOf(against.hits, hit) === null;
    return gone ? (
      <span class="badge warn" title={words.movesHelp.gone}>
        {words.moves.gone}
      </span>
    ) : null;
  }
  const move = moveOf(against.hits, hit);
  if (move === null) return <MoveSign tone="good" sign={words.moves.new} help={words.movesHelp.new} />;
  if (move > 0) return <MoveSign tone="good" sign={words.moves.up(move)} help={words.movesHelp.up(move)} />;
  if (move < 0) return <MoveSign tone="bad" sign={words.moves.down(-move)} help={words.movesHelp.down(-move)} />;
  return <MoveSign tone="" sign={words.moves.same} help={words.movesHelp.same} />;
}

function MoveSign({ tone, sign, help }: { tone: string; sign: string; help: string }) {
  return (
    <span class={`badge move ${tone}`} title={help}>
      <span aria-hidden="true">{sign}</span>
      <span class="visually-hidden">{help}</span>
    </span>
  );
}

export function shareText(share: RankerShareOutput): string {
  const score = share.score === null ? "" : share.score.toFixed(2);
  const terms = (share.terms ?? []).map((term) => term.word).join(" · ");
  return words.share(words.rank[share.by], share.rank ?? 0, terms === "" ? score : `${score}: ${terms}`);
}

/** The text that matched, with its words marked; else the longest text of the node. */
function Snippet({ hit }: { hit: SearchHitOutput }) {
  const isBody = (share: RankerShareOutput) => share.by === "words" && typeof hit.data[share.property ?? ""] === "string" && share.property !== "title" && share.property !== "name";
  const matched = hit.why.find(isBody) ?? hit.why.find((share) => share.property !== null);
  const own = matched?.property === null || matched === undefined ? undefined : hit.data[matched.property];
  const value = typeof own === "string" ? own : Object.values(hit.data).reduce<string>((best, each) => (typeof each === "string" && each.length > best.length ? each : best), "");
  const places = typeof own === "string" ? (matched?.terms ?? []).flatMap((term) => term.places) : [];
  if (value === "") return null;
  return (
    <p class="snippet">
      {markedParts(value, places).map((part, index) =>
        part.marked ? (
          <mark key={index}>
            <Plain text={part.text} />
          </mark>
        ) : (
          <Plain key={index} text={part.text} />
        ),
      )}
    </p>
  );
}

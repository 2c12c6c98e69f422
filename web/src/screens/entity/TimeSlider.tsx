/** Steps through the commits that touched an entity. The link holds the commit; the newest version has none. */
import type { RowVersionOutput } from "../../api/types";
import { Icon } from "../../kit/Icon";
import { Plain, plainText } from "../../kit/Plain";
import { fullTime, Time } from "../../kit/Time";
import { link, replace } from "../../state/location";
import { versionText as words } from "../../text/versions";
import { versionAt, versionOf } from "./versions";

export function TimeSlider({ changes, at }: { changes: readonly RowVersionOutput[]; at: string | undefined }) {
  if (changes.length === 0) return null;
  const last = changes.length - 1;
  const position = versionAt(changes, at);
  const version = versionOf(changes, position);
  const show = (to: number) => {
    const { at: _, ...params } = link.value.params;
    const commit = to >= last ? undefined : versionOf(changes, to)?.graph_commit_id;
    replace({ params: commit === undefined ? params : { ...params, at: commit } });
  };
  const sentence = version === undefined ? "" : [words.of(position + 1, changes.length), version.actor_id, version.message, fullTime(version.created_at)].filter((part) => part !== null).join(", ");
  return (
    <div class="time-slider" data-past={position < last ? "" : undefined}>
      <Icon name="clock" />
      <button type="button" class="button plain icon" aria-label={words.older} title={words.older} disabled={position === 0} onClick={() => show(position - 1)}>
        <span aria-hidden="true">‹</span>
      </button>
      <input type="range" min={0} max={Math.max(last, 1)} step={1} value={last === 0 ? 1 : position} disabled={last === 0} aria-label={words.slider} aria-valuetext={plainText(sentence)} onInput={(event) => show(Number(event.currentTarget.value))} />
      <button type="button" class="button plain icon" aria-label={words.newer} title={words.newer} disabled={position === last} onClick={() => show(position + 1)}>
        <span aria-hidden="true">›</span>
      </button>
      <span class="number">{last === 0 ? words.versions(1) : words.of(position + 1, changes.length)}</span>
      {version === undefined ? null : (
        <span class="row muted version-note">
          <span class="cut">{version.actor_id === null ? "" : <Plain text={version.actor_id} />}</span>
          <Time at={version.created_at} />
          <span class="cut">{version.message === null ? "" : <Plain text={version.message} />}</span>
        </span>
      )}
      {position < last ? (
        <button type="button" class="button small" onClick={() => show(last)}>
          {words.now}
        </button>
      ) : null}
    </div>
  );
}

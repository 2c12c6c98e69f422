/** The search field with its settings: type, ranking and filters. */
import { useState } from "preact/hooks";

import type { CatalogOutput } from "../../api/types";
import { Icon } from "../../kit/Icon";
import { go, link } from "../../state/location";
import { words } from "../../text/search";
import { filterable, OPERATORS, paramsOf, WAYS, type Condition, type Settings, type Side } from "./settings";

interface Props {
  settings: Settings;
  catalog: CatalogOutput | undefined;
  onChange(settings: Settings): void;
}

export function SearchForm({ text, settings, catalog, whole, onChange }: Props & { text: string; whole: boolean }) {
  const [typed, setTyped] = useState(text);
  return (
    <div class="stack tight">
      <form
        class="row wrap search-form"
        role="search"
        aria-label={words.title}
        onSubmit={(event) => {
          event.preventDefault();
          if (typed.trim() !== "") go({ params: { ...link.value.params, ...paramsOf(settings, "a"), q: typed.trim(), why: "" } });
        }}
      >
        <div class="searchbox grow">
          <Icon name="search" />
          <input class="input" type="search" autoComplete="off" aria-label={words.label} placeholder={words.placeholder} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
        </div>
        {whole ? <Basics side="a" settings={settings} catalog={catalog} onChange={onChange} /> : null}
        <button type="submit" class="button primary">
          {words.go}
        </button>
      </form>
      {whole ? <Filters settings={settings} catalog={catalog} onChange={onChange} /> : null}
    </div>
  );
}

/** The settings of one side of a comparison. */
export function SettingsForm({ side, settings, catalog, onChange }: Props & { side: Side }) {
  return (
    <>
      <Basics side={side} settings={settings} catalog={catalog} onChange={onChange} />
      <Filters settings={settings} catalog={catalog} onChange={onChange} />
    </>
  );
}

function Basics({ side, settings, catalog, onChange }: Props & { side: Side }) {
  return (
    <>
      <div class="row">
        <span class="muted" aria-hidden="true">
          {words.in}
        </span>
        <select class="select" aria-label={words.type} value={settings.type} onChange={(event) => onChange({ ...settings, type: event.currentTarget.value })}>
          <option value="">{words.allTypes}</option>
          {(catalog?.nodes ?? []).map((type) => (
            <option key={type.name} value={type.name}>
              {type.name}
            </option>
          ))}
        </select>
      </div>
      <div class="segmented" role="radiogroup" aria-label={words.by}>
        {WAYS.map((way) => (
          <label key={way}>
            <input type="radio" name={`by-${side}`} checked={settings.by === way} onChange={() => onChange({ ...settings, by: way })} />
            {words.ways[way]}
          </label>
        ))}
      </div>
    </>
  );
}

function Filters({ settings, catalog, onChange }: Props) {
  const properties = filterable(catalog, settings.type);
  const first = properties[0];
  const change = (at: number, condition: Condition | null) => {
    const where = settings.where.flatMap((each, index) => (index !== at ? [each] : condition === null ? [] : [condition]));
    onChange({ ...settings, where });
  };
  return (
    <div class="row wrap filters" role="group" aria-label={words.filters}>
      {settings.where.map((condition, at) => (
        <Filter key={`${at} ${condition.property} ${condition.value}`} condition={condition} names={properties.map((each) => each.name)} onChange={(next) => change(at, next)} />
      ))}
      {first === undefined ? null : (
        <button type="button" class="button small plain" onClick={() => onChange({ ...settings, where: [...settings.where, { property: first.name, operator: "=", value: "" }] })}>
          <Icon name="plus" />
          {words.addFilter}
        </button>
      )}
    </div>
  );
}

function Filter({ condition, names, onChange }: { condition: Condition; names: readonly string[]; onChange(next: Condition | null): void }) {
  const listed = names.includes(condition.property) ? names : [condition.property, ...names];
  return (
    <span class="filter row">
      <select class="select small" aria-label={words.property} value={condition.property} onChange={(event) => onChange({ ...condition, property: event.currentTarget.value })}>
        {listed.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <select class="select small" aria-label={words.operator} value={condition.operator} onChange={(event) => onChange({ ...condition, operator: event.currentTarget.value })}>
        {OPERATORS.map((operator) => (
          <option key={operator}>{operator}</option>
        ))}
      </select>
      <input class="input small" aria-label={words.value} title={condition.operator === "in" ? words.listHelp : undefined} value={condition.value} onChange={(event) => onChange({ ...condition, value: event.currentTarget.value })} />
      <button type="button" class="button plain icon small" aria-label={words.removeFilter(condition.property)} onClick={() => onChange(null)}>
        <Icon name="close" />
      </button>
    </span>
  );
}

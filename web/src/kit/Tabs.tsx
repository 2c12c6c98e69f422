/** Tabs: one panel of several. Arrow keys change the tab. */
import type { ComponentChildren } from "preact";

export interface Tab {
  readonly name: string;
  readonly title: string;
}

interface Props {
  label: string;
  tabs: readonly Tab[];
  selected: string;
  onSelect(name: string): void;
  /** Beside the tabs. */
  children?: ComponentChildren;
}

export function Tabs({ label, tabs, selected, onSelect, children }: Props) {
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const at = tabs.findIndex((tab) => tab.name === selected);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (next === undefined) return;
    onSelect(next.name);
    document.getElementById(`tab-${next.name}`)?.focus();
  };
  return (
    <div class="tabbar">
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map((tab) => (
          <button
            type="button"
            role="tab"
            id={`tab-${tab.name}`}
            key={tab.name}
            aria-selected={tab.name === selected}
            aria-controls={tab.name === selected ? `panel-${tab.name}` : undefined}
            tabIndex={tab.name === selected ? 0 : -1}
            onClick={() => onSelect(tab.name)}
          >
            {tab.title}
          </button>
        ))}
      </div>
      {children}
    </div>
  );
}

export function Panel({ name, children, class: className = "" }: { name: string; children: ComponentChildren; class?: string }) {
  return (
    <div role="tabpanel" id={`panel-${name}`} aria-labelledby={`tab-${name}`} class={`panel ${className}`}>
      {children}
    </div>
  );
}

/** A button that opens a list of actions or links. Arrow keys move, Escape closes and returns the focus. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { Icon } from "./Icon";

export interface MenuItem {
  label: ComponentChildren;
  /** A heading above this item. */
  group?: string;
  href?: string;
  run?(): void;
  checked?: boolean;
  hint?: string;
}

interface Props {
  label: string;
  button: ComponentChildren;
  items: readonly MenuItem[];
  class?: string;
  end?: boolean;
  /** Shows no arrow. */
  bare?: boolean;
  onOpen?(): void;
}

export function Menu({ label, button, items, class: className = "button plain", end = false, bare = false, onOpen }: Props) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const trigger = useRef<HTMLButtonElement>(null);

  useEffect(() => {
    if (!open) return undefined;
    const close = (event: Event) => {
      if (root.current !== null && !root.current.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", close);
    return () => document.removeEventListener("pointerdown", close);
  }, [open]);

  useEffect(() => {
    if (open) root.current?.querySelector<HTMLElement>("[role^=menuitem]")?.focus();
  }, [open]);

  const leave = () => {
    setOpen(false);
    trigger.current?.focus();
  };
  const move = (event: KeyboardEvent) => {
    const all = [...(root.current?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    if (event.key === "Escape") leave();
    else if (event.key === "Tab") setOpen(false);
    else if (event.key === "ArrowDown") all[(at + 1) % all.length]?.focus();
    else if (event.key === "ArrowUp") all[(at - 1 + all.length) % all.length]?.focus();
    else if (event.key === "Home") all[0]?.focus();
    else if (event.key === "End") all.at(-1)?.focus();
    else return;
    if (event.key !== "Tab") event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="menu" ref={root}>
      <button
        ref={trigger}
        type="button"
        class={className}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={label}
        onClick={() => {
          if (!open) onOpen?.();
          setOpen(!open);
        }}
      >
        {button}
        {bare ? null : <Icon name="chevron" />}
      </button>
      {open ? (
        <div class={end ? "popup end" : "popup"} role="menu" aria-label={label} onKeyDown={move}>
          {items.map((item, index) => (
            <Item item={item} key={index} leave={leave} />
          ))}
        </div>
      ) : null}
    </div>
  );
}

function Item({ item, leave }: { item: MenuItem; leave(): void }) {
  const role = item.checked === undefined ? "menuitem" : "menuitemradio";
  const content = (
    <>
      {item.checked === undefined ? null : <span aria-hidden="true">{item.checked ? "●" : "○"}</span>}
      <span class="grow cut">{item.label}</span>
      {item.hint === undefined ? null : <span class="muted small">{item.hint}</span>}
    </>
  );
  return (
    <>
      {item.group === undefined ? null : (
        <div class="group" role="presentation">
          {item.group}
        </div>
      )}
      {item.href === undefined ? (
        <button type="button" role={role} tabIndex={-1} aria-checked={item.checked} onClick={() => (leave(), item.run?.())}>
          {content}
        </button>
      ) : (
        <a role={role} tabIndex={-1} href={item.href} aria-checked={item.checked} onClick={leave}>
          {content}
        </a>
      )}
    </>
  );
}

/** A modal dialog: the element `dialog`, which keeps the focus inside and closes with Escape. */
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

interface Props {
  title: string;
  /** Called when the dialog closes; without it the dialog cannot be left. */
  onClose?(): void;
  children: ComponentChildren;
  wide?: boolean;
  class?: string;
  /** Hides the title from view, not from screen readers. */
  quiet?: boolean;
}

export function Dialog({ title, onClose, children, wide = false, class: className = "", quiet = false }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={`dialog ${wide ? "wide" : ""} ${className}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
      onClick={(event) => {
        if (event.target === element.current) onClose?.();
      }}
    >
      <div>
        <h2 id={id} class={quiet ? "visually-hidden" : ""}>
          {title}
        </h2>
        {children}
      </div>
    </dialog>
  );
}

/** Short messages: seen for some seconds, and read out by screen readers. */
import { signal } from "@preact/signals";

import { text } from "../text/en";

const SHOWN_MS = 2500;
const messages = signal<readonly { id: number; text: string }[]>([]);
let last = 0;

export function announce(message: string): void {
  const id = (last += 1);
  messages.value = [...messages.value, { id, text: message }];
  setTimeout(() => (messages.value = messages.value.filter((each) => each.id !== id)), SHOWN_MS);
}

export async function copyText(value: string): Promise<void> {
  await navigator.clipboard.writeText(value);
  announce(text.copied);
}

export function Announcements() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {messages.value.map((message) => (
        <div class="toast" key={message.id}>
          {message.text}
        </div>
      ))}
    </div>
  );
}

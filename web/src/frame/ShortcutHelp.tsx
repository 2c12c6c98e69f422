/** The list of keys. */
import { Dialog } from "../kit/Dialog";
import { text } from "../text/en";
import { helpOpen } from "./keys";

export function ShortcutHelp() {
  const close = () => (helpOpen.value = false);
  return (
    <Dialog title={text.shortcuts.title} onClose={close}>
      <table class="plain-table">
        <tbody>
          {[...text.shortcuts.rows, ...text.shortcuts.picture].map(([keys, meaning]) => (
            <tr key={keys}>
              <td>
                <kbd>{keys}</kbd>
              </td>
              <td>{meaning}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="actions">
        <button type="button" class="button primary" onClick={close}>
          {text.close}
        </button>
      </div>
    </Dialog>
  );
}

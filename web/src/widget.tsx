/**
 * The entry of notebooks and saved files: one module. anywidget calls `render`; a saved file has its document in an element
 * of the page. Both draw into a shadow root, so that styles neither leave nor enter.
 */
import { render as draw } from "preact";

import styles from "widget-styles";
import { Shown } from "./shown/Shown";
import type { ShownDocument } from "./shown/document";
import { NotebookSource, type WidgetModel } from "./source/notebook";
import { shownTheme } from "./state/prefs";

const SAVED = "omnigraph-data";

/** Returns an element in a shadow root with the styles; the theme follows the system and Jupyter. */
function stage(host: HTMLElement): HTMLElement {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(styles);
  root.adoptedStyleSheets = [sheet];
  const dark = document.body.dataset["jpThemeLight"] === "false" || (document.body.dataset["jpThemeLight"] === undefined && shownTheme.value === "dark");
  host.dataset["theme"] = dark ? "dark" : "light";
  const element = document.createElement("div");
  element.className = "widget";
  root.replaceChildren(element);
  return element;
}

function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  const source = new NotebookSource(model);
  const element = stage(el);
  const update = () => {
    const onSelect = (node: { type: string; id: string } | null) => {
      model.set("selected", node === null ? [] : [node]);
      model.save_changes();
    };
    draw(<Shown shown={model.get("document") as ShownDocument} answers={source} onSelect={onSelect} />, element);
  };
  update();
  model.on("change:document", update);
  return () => {
    source.close();
    draw(null, element);
  };
}

const saved = typeof document === "undefined" ? null : document.getElementById(SAVED);
if (saved !== null) {
  const host = document.getElementById("omnigraph") as HTMLElement;
  draw(<Shown shown={JSON.parse(saved.textContent) as ShownDocument} answers={null} />, stage(host));
}

export default { render };

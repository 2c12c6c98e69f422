/** The entry of the page: settings, session, address, then the frame. */
import { render } from "preact";

import { Client } from "./api/client";
import type { ExplorerConfigOutput } from "./api/types";
import { App, TokenRequest } from "./frame/App";
import { SCREENS } from "./screens/registry";
import { HttpSource } from "./source/http";
import { setConfig, startContext } from "./state/context";
import { HOME, MAIN, formatLink } from "./state/link";
import { followAddress, link } from "./state/location";
import { followTheme } from "./state/prefs";
import { renewWith, startSession } from "./state/session";

async function start(): Promise<void> {
  followTheme();
  const to = startSession();
  const client = new Client(new URL("..", location.href));
  const config = await client.json<ExplorerConfigOutput>("ui/config.json");
  setConfig(config);
  const root = document.getElementById("app") as HTMLElement;
  render(<TokenRequest />, root);
  if (config.sign_in.length > 0) {
    const { renew, resume } = await import("./state/signIn");
    renewWith(renew);
    await resume(config.sign_in);
  }
  const source = new HttpSource(client, config);
  const graph = config.default_graph ?? (await source.graphs())[0] ?? "";
  if (to !== null) history.replaceState(null, "", `#/g/${encodeURIComponent(graph)}/${to}`);
  else if (location.hash.length <= 1) {
    history.replaceState(null, "", formatLink({ graph, ref: MAIN, screen: HOME, path: [], params: {} }));
  }
  followAddress(graph, SCREENS.map((screen) => screen.name));
  startContext(source);
  document.title = `${link.value.graph} · OmniGraph`;
  render(<App />, root);
}

void start();

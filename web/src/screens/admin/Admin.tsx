/** Administration: the caller and its rights, decisions of the policy, load, running and slow queries, tables, maintenance. */
import { useEffect } from "preact/hooks";

import { Boundary } from "../../kit/load";
import { Panel, Tabs } from "../../kit/Tabs";
import { go, link } from "../../state/location";
import { admin as words } from "../../text/admin";
import { Access } from "./Access";
import { Maintenance } from "./Maintenance";
import { Overview } from "./Overview";
import { Queries } from "./Queries";
import { startSampling } from "./samples";
import { Tables } from "./Tables";
import { Webhooks } from "./Webhooks";

const VIEWS = { overview: Overview, access: Access, queries: Queries, tables: Tables, maintenance: Maintenance, webhooks: Webhooks } as const;
type Name = keyof typeof VIEWS;
const NAMES = Object.keys(VIEWS) as Name[];

export default function Admin() {
  useEffect(startSampling, []);
  const selected = NAMES.find((name) => name === link.value.params["tab"]) ?? "overview";
  const View = VIEWS[selected];
  return (
    <div class="admin">
      <h1 class="visually-hidden">{words.title}</h1>
      <Tabs label={words.title} tabs={NAMES.map((name) => ({ name, title: words.tabs[name] }))} selected={selected} onSelect={(tab) => go({ params: { tab: tab === "overview" ? "" : tab } })} />
      <Panel name={selected}>
        <Boundary key={selected}>
          <View />
        </Boundary>
      </Panel>
    </div>
  );
}

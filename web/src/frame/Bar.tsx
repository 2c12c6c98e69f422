/** The bar: graph, ref, commit, time, search, theme and account. */
import { copyText } from "../kit/announce";
import { Icon } from "../kit/Icon";
import { Menu, type MenuItem } from "../kit/Menu";
import { Plain } from "../kit/Plain";
import { findScreen } from "../screens/registry";
import { config, me, place } from "../state/context";
import { isPinned, MAIN } from "../state/link";
import { go, href, link } from "../state/location";
import { chooseTheme, theme, type Theme } from "../state/prefs";
import { setToken, token } from "../state/session";
import { text } from "../text/en";
import { helpOpen, paletteOpen } from "./keys";
import { RefMenu, TimeMenu } from "./RefMenu";

export function Bar() {
  return (
    <div class="bar">
      <GraphMenu />
      <span class="separator" />
      <RefMenu />
      <CommitChip />
      <TimeMenu />
      {findScreen("search") === undefined ? <span class="grow" /> : <SearchBox />}
      <div class="row push">
        <AccountMenu />
        <ThemeMenu />
      </div>
    </div>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <path d="M9 9l14 4M9 9l4 15M23 13l-10 11" stroke="var(--kind-0)" stroke-width="2.5" fill="none" />
      <circle cx="9" cy="9" r="5" fill="var(--kind-0)" />
      <circle cx="24" cy="13" r="4" fill="var(--kind-2)" />
      <circle cx="13" cy="24" r="4" fill="var(--kind-1)" />
    </svg>
  );
}

function GraphMenu() {
  const graphs = me.value?.graphs ?? [];
  const name = link.value.graph;
  const label = (
    <span class="brand">
      <Mark />
      <span class="cut">{name}</span>
    </span>
  );
  if (graphs.length < 2) {
    return (
      <a class="brand" href={href({ screen: "home", path: [], params: {} })} aria-label={`${text.menus.graph} ${name}`}>
        <Mark />
        <span class="cut">{name}</span>
      </a>
    );
  }
  const items = graphs.map((graph): MenuItem => ({
    label: graph.graph_id,
    checked: graph.graph_id === name,
    href: href({ graph: graph.graph_id, ref: MAIN, screen: "home", path: [], params: {} }),
  }));
  return <Menu label={`${text.menus.graph} ${name}`} button={label} items={items} />;
}

function CommitChip() {
  const commit = place.value?.commit;
  if (commit === undefined || isPinned(link.value.ref)) return null;
  return (
    <button type="button" class="chip mono only-wide" title={`${text.commit(commit)}. ${text.copy}`} onClick={() => void copyText(commit)}>
      @{commit.slice(-6)}
    </button>
  );
}

function SearchBox() {
  return (
    <form
      class="search searchbox"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const field = event.currentTarget.elements.namedItem("q") as HTMLInputElement;
        if (field.value.trim() !== "") go({ screen: "search", path: [], params: { q: field.value.trim() } });
      }}
    >
      <Icon name="search" />
      <input class="input" id="search" name="q" type="search" autoComplete="off" placeholder={text.search.placeholder} aria-label={text.search.label} />
      <kbd aria-hidden="true">/</kbd>
    </form>
  );
}

function AccountMenu() {
  const actor = me.value?.actor_id;
  const items: MenuItem[] = [
    { label: text.menus.palette, hint: "Ctrl K", run: () => (paletteOpen.value = true) },
    { label: text.menus.shortcuts, hint: "?", run: () => (helpOpen.value = true) },
    { label: text.menus.api, href: "../docs" },
  ];
  if (token.value !== null) items.push({ label: text.menus.signOut, run: () => (setToken(null), location.reload()) });
  return (
    <Menu
      end
      label={`${text.menus.account} ${actor ?? text.menus.openMode}`}
      items={items}
      button={
        <>
          <Icon name="user" />
          <span class="cut only-wide">{actor === undefined || actor === null ? (config.needs_token ? "" : text.menus.openMode) : <Plain text={actor} />}</span>
        </>
      }
    />
  );
}

function ThemeMenu() {
  const items = (["system", "light", "dark"] as const).map((each: Theme): MenuItem => ({
    label: text.menus.themes[each],
    checked: theme.value === each,
    run: () => chooseTheme(each),
  }));
  return <Menu end bare class="button plain icon" label={text.menus.theme} button={<Icon name="theme" />} items={items} />;
}

/** The frame of every screen: the bar with graph, ref and search, the navigation, notices and dialogs. */
import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import type { SignInOutput } from "../api/types";
import { Announcements } from "../kit/announce";
import { Dialog } from "../kit/Dialog";
import { Boundary, Skeleton } from "../kit/load";
import { Plain } from "../kit/Plain";
import { ProblemBox } from "../kit/ProblemBox";
import { findScreen, SCREENS } from "../screens/registry";
import { config, place, placeProblem, written } from "../state/context";
import { isPinned } from "../state/link";
import { href, ignoredParts, link } from "../state/location";
import { countProposals, countText, openProposals } from "../state/proposals";
import { offline, signInFault, tokenRequest } from "../state/session";
import { text } from "../text/en";
import { Bar } from "./Bar";
import { followKeys, helpOpen, paletteOpen } from "./keys";
import { Palette } from "./Palette";
import { ShortcutHelp } from "./ShortcutHelp";

export function App() {
  const { screen, ref, graph } = link.value;
  const main = useRef<HTMLElement>(null);
  useEffect(followKeys, []);
  useEffect(countProposals, []);
  useEffect(() => {
    document.title = `${findScreen(screen)?.title ?? ""} · ${graph} · ${text.product}`;
    // A narrow window does not show all screens of the navigation.
    document.querySelector(".nav a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [screen, graph]);
  return (
    <>
      <a class="button primary skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        {text.skip}
      </a>
      <header class="top" data-past={isPinned(ref) ? "" : undefined}>
        <Bar />
        <nav class="nav" aria-label={text.nav.label}>
          {SCREENS.filter((each) => each.listed).map((each) => (
            <a key={each.name} href={href({ screen: each.name, path: [], params: {} })} aria-current={each.name === screen ? "page" : undefined}>
              {each.title}
              {each.name === "proposals" && (openProposals.value ?? 0) > 0 ? (
                <>
                  {" "}
                  <span class="badge">{countText(openProposals.value ?? 0)}</span>
                </>
              ) : null}
            </a>
          ))}
        </nav>
      </header>
      <Notices />
      <main class="main" id="main" tabIndex={-1} ref={main}>
        <Boundary key={screen}>
          {placeProblem.value !== null && place.value === null && findScreen(screen)?.placeless !== true ? (
            <ProblemBox problem={placeProblem.value} onRetry={() => (written.value += 1)} />
          ) : (
            <ScreenView name={screen} />
          )}
        </Boundary>
      </main>
      <Announcements />
      {paletteOpen.value ? <Palette /> : null}
      {helpOpen.value ? <ShortcutHelp /> : null}
      <TokenRequest />
    </>
  );
}

const loaded = new Map<string, ComponentType>();

function ScreenView({ name }: { name: string }) {
  const [, setReady] = useState("");
  const [fault, setFault] = useState<Error | null>(null);
  useEffect(() => {
    if (loaded.has(name)) return;
    findScreen(name)
      ?.load()
      .then((module) => {
        loaded.set(name, module.default);
        setReady(name);
      }, setFault);
  }, [name]);
  if (fault !== null) throw fault;
  const View = loaded.get(name);
  return View === undefined ? <Skeleton /> : <View />;
}

function Notices() {
  return (
    <>
      {offline.value ? (
        <div class="notice" role="status">
          {text.offline}
        </div>
      ) : null}
      {ignoredParts.value.length > 0 ? (
        <div class="notice" role="status">
          <span class="grow cut">
            <Plain text={text.ignored(ignoredParts.value)} />
          </span>
          <button type="button" class="button small" onClick={() => (ignoredParts.value = [])}>
            {text.close}
          </button>
        </div>
      ) : null}
      {isPinned(link.value.ref) ? (
        <div class="notice" role="status">
          <span>{text.pinned}</span>
          <a href={href({ ref: "main" })}>{text.unpin}</a>
        </div>
      ) : null}
      {config.read_only ? (
        <div class="notice" role="status">
          {text.readOnly}
        </div>
      ) : null}
    </>
  );
}

/** Leaves for an issuer; a failure is shown in the dialog. */
async function leaveFor(provider: SignInOutput): Promise<void> {
  try {
    await (await import("../state/signIn")).signIn(provider);
  } catch (error) {
    signInFault.value = error instanceof Error ? error.message : String(error);
  }
}

/** Asks for a token while a request waits for one; before the page knows its graph, it is all there is. */
export function TokenRequest() {
  return tokenRequest.value === null ? null : <TokenDialog />;
}

function TokenDialog() {
  const [value, setValue] = useState("");
  const request = tokenRequest.value;
  return (
    <Dialog title={text.token.title}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (value.trim() !== "") request?.give(value.trim());
        }}
      >
        <p class="muted">{text.token.explain}</p>
        {request?.refused === true ? <p class="problem">{text.token.refused}</p> : null}
        {signInFault.value === null ? null : (
          <p class="problem" role="alert">
            <Plain text={text.token.signInFailed(signInFault.value)} />
          </p>
        )}
        {config.sign_in.map((provider) => (
          <button type="button" class="button primary" key={provider.issuer} onClick={() => void leaveFor(provider)}>
            {text.token.signIn(new URL(provider.issuer).host)}
          </button>
        ))}
        <label class="field">
          <span class="label">{text.token.label}</span>
          <input class="input mono" type="password" autoComplete="off" value={value} onInput={(event) => setValue(event.currentTarget.value)} />
        </label>
        <div class="actions">
          <button type="submit" class="button primary" disabled={value.trim() === ""}>
            {text.token.use}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/**
 * The token of this tab, and whether the server answers.
 *
 * The token lives in memory and in `sessionStorage` of this origin and tab. It is sent as a header only. `omnigraph ui`
 * passes it in the fragment, which is removed from the address before anything else happens.
 */
import { signal } from "@preact/signals";

const KEY = "omnigraph.token";

export const token = signal<string | null>(null);
/** True while requests fail because no server answers. */
export const offline = signal(false);
/** Resolves the dialog that asks for a token; null while none is open. */
export const tokenRequest = signal<{ refused: boolean; give(token: string): void } | null>(null);

/** Takes the token from the address, else from the session. Returns the place that the address names beside it. */
export function startSession(): string | null {
  const given = new URLSearchParams(location.hash.startsWith("#token=") ? location.hash.slice(1) : "");
  const fromAddress = given.get("token");
  if (fromAddress !== null) {
    setToken(fromAddress);
    history.replaceState(null, "", location.pathname);
    return given.get("to");
  }
  token.value = sessionStorage.getItem(KEY);
  return null;
}

export function setToken(value: string | null): void {
  token.value = value;
  dropSignIn();
  if (value === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, value);
}

/** The session at an issuer; `signIn.ts` writes it, every other token ends it. */
export const SIGN_IN = "omnigraph.sign-in";
/** Why a sign-in failed; null if none did. */
export const signInFault = signal<string | null>(null);
/** Renews a token of an issuer; null without one. */
let renewal: (() => Promise<boolean>) | null = null;

export const dropSignIn = (): void => sessionStorage.removeItem(SIGN_IN);

export function renewWith(renew: () => Promise<boolean>): void {
  renewal = renew;
}

let pending: Promise<void> | null = null;

/** Gets a token, once for all requests that wait for one: by renewal, else from the user. */
export function askForToken(): Promise<void> {
  pending ??= obtain().finally(() => (pending = null));
  return pending;
}

async function obtain(): Promise<void> {
  if (renewal !== null && (await renewal())) return;
  const refused = token.value !== null;
  const value = await new Promise<string>((resolve) => (tokenRequest.value = { refused, give: resolve }));
  setToken(value);
  tokenRequest.value = null;
}

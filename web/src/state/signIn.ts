/**
 * Sign-in at an issuer of OpenID Connect: the page is a public client, and uses the code flow with PKCE.
 *
 * The browser leaves for the issuer with the hash of a random verifier, a random `state` and a random `nonce`, which stay
 * in `sessionStorage` of this tab. On return, `state` must be the same; the code and the verifier are exchanged for tokens;
 * the ID token must name this issuer, this client and the nonce. It comes from the token endpoint itself, so that its
 * signature adds nothing (OpenID Connect Core 3.1.3.7); the server verifies the access token at every request.
 *
 * Tokens are in memory and in `sessionStorage`, sent as headers only, renewed before their end and dropped at sign-out.
 */
import type { SignInOutput } from "../api/types";
import { dropSignIn, SIGN_IN, setToken, signInFault, token } from "./session";

const PENDING = "omnigraph.sign-in.pending";
const EARLY_S = 60;
const LONGEST_MS = 2 ** 31 - 1;

interface Metadata {
  readonly issuer: string;
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly response_modes_supported?: readonly string[];
}

interface Pending {
  readonly provider: SignInOutput;
  readonly verifier: string;
  readonly state: string;
  readonly nonce: string;
  /** The fragment of the page that the user left. */
  readonly fragment: string;
}

interface Tokens {
  readonly access_token: string;
  readonly token_type: string;
  readonly expires_in?: number;
  readonly refresh_token?: string;
  readonly id_token?: string;
}

interface Session {
  readonly provider: SignInOutput;
  readonly refresh: string | null;
  /** In milliseconds since 1970; null if unknown. */
  readonly expires: number | null;
}

let session: Session | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Leaves for the issuer. The browser comes back to the same screen. */
export async function signIn(provider: SignInOutput): Promise<void> {
  const metadata = await discover(provider);
  const pending: Pending = { provider, verifier: random(), state: random(), nonce: random(), fragment: location.hash };
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  const url = new URL(metadata.authorization_endpoint);
  const members: Record<string, string> = {
    response_type: "code",
    client_id: provider.client_id,
    redirect_uri: redirectUri(),
    scope: provider.scopes.join(" "),
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: await challengeOf(pending.verifier),
    code_challenge_method: "S256",
  };
  // A code in the fragment reaches no server and no log.
  if (metadata.response_modes_supported?.includes("fragment") === true) members["response_mode"] = "fragment";
  for (const [name, value] of Object.entries(members)) url.searchParams.set(name, value);
  location.assign(url.href);
}

/** Completes a sign-in if the browser returns from an issuer, else continues that of this tab. */
export async function resume(providers: readonly SignInOutput[]): Promise<void> {
  const answer = answerOf(location);
  const text = sessionStorage.getItem(PENDING);
  if (answer !== null && text !== null) {
    sessionStorage.removeItem(PENDING);
    const pending = JSON.parse(text) as Pending;
    history.replaceState(null, "", location.pathname + pending.fragment);
    const known = providers.find((each) => each.issuer === pending.provider.issuer && each.client_id === pending.provider.client_id);
    try {
      if (known === undefined) throw new Error("the server no longer accepts this issuer");
      await complete(pending, answer);
    } catch (error) {
      signInFault.value = messageOf(error);
    }
    return;
  }
  if (answer !== null) history.replaceState(null, "", location.pathname);
  const kept = sessionStorage.getItem(SIGN_IN);
  if (kept === null || token.value === null) return;
  session = JSON.parse(kept) as Session;
  schedule();
}

/** Renews the token now; false if the issuer gave no way, or refuses. */
export async function renew(): Promise<boolean> {
  // Another token ends the session.
  if (sessionStorage.getItem(SIGN_IN) === null) session = null;
  const current = session;
  if (current === null || current.refresh === null) return false;
  try {
    const metadata = await discover(current.provider);
    const tokens = await ask(metadata, { grant_type: "refresh_token", refresh_token: current.refresh, client_id: current.provider.client_id });
    keep(current.provider, tokens, current.refresh);
    return true;
  } catch (error) {
    session = null;
    dropSignIn();
    signInFault.value = messageOf(error);
    return false;
  }
}

async function complete(pending: Pending, answer: URLSearchParams): Promise<void> {
  const { provider } = pending;
  if (answer.get("state") !== pending.state) throw new Error("the answer belongs to another sign-in ('state' differs)");
  const issuer = answer.get("iss");
  if (issuer !== null && issuer !== provider.issuer) throw new Error("the answer comes from another issuer");
  const refused = answer.get("error");
  if (refused !== null) throw new Error(answer.get("error_description") ?? refused);
  const metadata = await discover(provider);
  const tokens = await ask(metadata, {
    grant_type: "authorization_code",
    code: answer.get("code") ?? "",
    redirect_uri: redirectUri(),
    client_id: provider.client_id,
    code_verifier: pending.verifier,
  });
  checkIdToken(tokens.id_token, provider, pending.nonce, Date.now() / 1000);
  keep(provider, tokens, null);
}

/** Throws unless an ID token is for this client, of this issuer, not expired, and made for this sign-in. */
export function checkIdToken(text: string | undefined, provider: SignInOutput, nonce: string, now: number): void {
  const claims = text === undefined ? null : claimsOf(text);
  if (claims === null) throw new Error("the issuer sent no ID token");
  const audience: unknown = claims["aud"];
  const audiences = Array.isArray(audience) ? (audience as unknown[]) : [audience];
  if (claims["iss"] !== provider.issuer) throw new Error("the ID token is of another issuer");
  if (!audiences.includes(provider.client_id)) throw new Error("the ID token is for another client");
  if (audiences.length > 1 && claims["azp"] !== provider.client_id) throw new Error("the ID token is for another client");
  if (typeof claims["exp"] !== "number" || claims["exp"] + EARLY_S <= now) throw new Error("the ID token has expired");
  if (claims["nonce"] !== nonce) throw new Error("the ID token belongs to another sign-in ('nonce' differs)");
}

/** Returns the claims of a JSON Web Token, unverified; null if it is none. */
export function claimsOf(text: string): Record<string, unknown> | null {
  const [, body, ...rest] = text.split(".");
  if (body === undefined || rest.length !== 1) return null;
  try {
    const bytes = Uint8Array.from(atob(body.replaceAll("-", "+").replaceAll("_", "/")), (sign) => sign.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof claims === "object" && claims !== null ? (claims as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function keep(provider: SignInOutput, tokens: Tokens, refresh: string | null): void {
  if (typeof tokens.access_token !== "string" || tokens.token_type.toLowerCase() !== "bearer") throw new Error("the issuer sent no bearer token");
  const end = claimsOf(tokens.access_token)?.["exp"];
  const expires = typeof tokens.expires_in === "number" ? Date.now() + tokens.expires_in * 1000 : typeof end === "number" ? end * 1000 : null;
  session = { provider, refresh: tokens.refresh_token ?? refresh, expires };
  setToken(tokens.access_token);
  sessionStorage.setItem(SIGN_IN, JSON.stringify(session));
  signInFault.value = null;
  schedule();
}

/** Renews a minute before the end, or at half of a short life. */
function schedule(): void {
  clearTimeout(timer);
  if (session === null || session.refresh === null || session.expires === null) return;
  timer = setTimeout(() => void renew(), Math.min(LONGEST_MS, delayOf(session.expires - Date.now())));
}

export const delayOf = (left: number): number => Math.max(0, Math.max(left / 2, left - EARLY_S * 1000));

async function discover(provider: SignInOutput): Promise<Metadata> {
  const response = await fetch(`${provider.issuer.replace(/\/$/, "")}/.well-known/openid-configuration`, { credentials: "omit", cache: "no-cache" });
  if (!response.ok) throw new Error(`the issuer answered ${response.status}`);
  const metadata = (await response.json()) as Metadata;
  if (metadata.issuer !== provider.issuer) throw new Error("the discovery document is of another issuer");
  for (const address of [metadata.authorization_endpoint, metadata.token_endpoint]) {
    if (!/^https?:\/\//.test(address)) throw new Error("the discovery document names no usable endpoint");
  }
  return metadata;
}

async function ask(metadata: Metadata, members: Record<string, string>): Promise<Tokens> {
  const response = await fetch(metadata.token_endpoint, { method: "POST", body: new URLSearchParams(members), credentials: "omit" });
  const answer = (await response.json()) as Tokens & { error?: string; error_description?: string };
  if (!response.ok) throw new Error(answer.error_description ?? answer.error ?? `the issuer answered ${response.status}`);
  return answer;
}

/** Returns the answer of an issuer, which is in the query or in the fragment of the address; null if there is none. */
export function answerOf(address: Pick<Location, "search" | "hash">): URLSearchParams | null {
  for (const part of [address.search, address.hash]) {
    const members = new URLSearchParams(part.slice(1));
    if (members.has("state") && (members.has("code") || members.has("error"))) return members;
  }
  return null;
}

const redirectUri = (): string => new URL(location.pathname, location.origin).href;
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
const base64Url = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const random = (): string => base64Url(crypto.getRandomValues(new Uint8Array(32)));

/** Returns the challenge of a verifier: its SHA-256. */
export async function challengeOf(verifier: string): Promise<string> {
  return base64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
}

import { describe, expect, it, vi } from "vitest";

vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => undefined, removeItem: () => undefined });
const { answerOf, challengeOf, checkIdToken, claimsOf, delayOf } = await import("../src/state/signIn");

const PROVIDER = { issuer: "https://id.example.com", client_id: "page", scopes: ["openid"] };
const NOW = 1_000_000;
const idToken = (claims: object) => `e30.${btoa(JSON.stringify({ iss: PROVIDER.issuer, aud: "page", exp: NOW + 60, nonce: "n", ...claims })).replaceAll("=", "")}.x`;

describe("sign-in", () => {
  it("hashes the verifier as RFC 7636 does", async () => {
    expect(await challengeOf("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")).toBe("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
  });

  it("finds the answer in the query or the fragment", () => {
    expect(answerOf({ search: "?code=c&state=s", hash: "" })?.get("code")).toBe("c");
    expect(answerOf({ search: "", hash: "#error=access_denied&state=s" })?.get("error")).toBe("access_denied");
    expect(answerOf({ search: "", hash: "#/g/station/main/query?code=c" })).toBe(null);
  });

  it("accepts only an ID token for this sign-in", () => {
    const check = (claims: object) => () => checkIdToken(idToken(claims), PROVIDER, "n", NOW);
    expect(check({})).not.toThrow();
    expect(check({ aud: ["page", "other"], azp: "page" })).not.toThrow();
    for (const claims of [{ nonce: "m" }, { aud: "other" }, { aud: ["page", "other"] }, { iss: "https://evil.example.com" }, { exp: NOW - 100 }, { exp: "soon" }]) expect(check(claims)).toThrow();
    expect(() => checkIdToken(undefined, PROVIDER, "n", NOW)).toThrow();
    expect(claimsOf("no.token")).toBe(null);
  });

  it("renews before the end", () => {
    expect(delayOf(300_000)).toBe(240_000);
    expect(delayOf(6_000)).toBe(3_000);
    expect(delayOf(-5)).toBe(0);
  });
});

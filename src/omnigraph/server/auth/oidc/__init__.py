"""OpenID Connect: requests with JSON Web Tokens of configured issuers.

`issuers` reads the settings, `key_sets` fetches and keeps the keys of an issuer, `json_web_tokens` verifies a token,
`claims` makes the caller of its claims, and `metadata` tells clients where to get a token. PyJWT verifies signatures;
it is imported if an issuer is configured.
"""

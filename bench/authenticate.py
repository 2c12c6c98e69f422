"""The check of a bearer token against small and large sets.

The time must not depend on the number of tokens: the ratio of 10,000 tokens to 10 is about 1. A refusal also creates
the exception.
"""

from __future__ import annotations

from itertools import cycle
from random import Random

from bench.measure import medians_us
from omnigraph.errors import Unauthorized
from omnigraph.server.auth.tokens import Principal, TokenEntry, TokenSet, new_token, token_digest

SIZES = (10, 10_000)
ROUNDS, CALLS = 40, 1_000


def figures(*, sizes: tuple[int, int] = SIZES, rounds: int = ROUNDS, calls: int = CALLS) -> dict[str, float]:
    functions = {}
    for size in sizes:
        known = [new_token() for _ in range(size)]
        tokens = TokenSet.of(TokenEntry(token_digest(token), Principal(f"actor {n}")) for n, token in enumerate(known))
        functions[f"accept, {size} tokens"] = accepting(tokens, known)
        functions[f"refuse, {size} tokens"] = refusing(tokens, [new_token() for _ in range(size)])
    times = medians_us(functions, rounds=rounds, calls=calls)
    small, large = sizes
    ratio = times[f"accept, {large} tokens"] / times[f"accept, {small} tokens"]
    return {f"{name}, us": value for name, value in times.items()} | {
        f"accept, {large} to {small} tokens, ratio": ratio
    }


def accepting(tokens: TokenSet, known: list[str]):
    """A function that checks the next of all tokens, in random order."""
    headers = [f"Bearer {token}" for token in known]
    Random(1).shuffle(headers)
    following = cycle(headers)
    return lambda: tokens.find(next(following))


def refusing(tokens: TokenSet, unknown: list[str]):
    following = cycle([f"Bearer {token}" for token in unknown])

    def refuse() -> None:
        try:
            tokens.find(next(following))
        except Unauthorized:
            return
        raise AssertionError("an unknown token was accepted")

    return refuse


if __name__ == "__main__":
    for name, value in figures().items():
        print(f"{name:<40} {value:10.2f}")

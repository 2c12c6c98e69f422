"""The page about embeddings names every variable and provider, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path

from omnigraph import older_names
from omnigraph.embedding import config, rate_limit
from omnigraph.errors import EmbeddingError, ModelMismatch

PAGE = (Path(__file__).parents[3] / "docs" / "embeddings.md").read_text(encoding="utf-8")


def test_every_variable_and_provider_is_named():
    source = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in (config, rate_limit, older_names))
    variables = set(re.findall(r'"((?:OMNIGRAPH|NANOGRAPH|GEMINI|OPENAI|OPENROUTER)_[A-Z_]+)"', source))
    variables = {name for name in variables if not name.endswith("_")}
    assert len(variables) == 15
    for word in (*variables, *config.PROVIDERS, *(f"{number}" for number in (30_000, 4, 200, 60_000))):
        assert word in PAGE, word
    for service in config._SERVICES.values():
        assert f"`{service.base_url}`" in PAGE
        assert f"`{service.model}`" in PAGE
    for error in (EmbeddingError, ModelMismatch):
        assert f"`{error.default_code}`" in PAGE


def test_the_example_runs():
    (example,) = re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)
    names = {}
    exec(example, names)
    merged, baked = names["likeness"]
    assert merged > baked + 0.2

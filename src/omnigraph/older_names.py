"""Names with the older prefix `nanograph`, which stay valid because they are public.

- The settings of embeddings are also read from `NANOGRAPH_*` variables, after the `OMNIGRAPH_*` variable of the same
  meaning: `NANOGRAPH_EMBEDDINGS_MOCK`, `NANOGRAPH_EMBED_MODEL` (provider `openai` only), and timeout, attempts and
  backoff as `NANOGRAPH_EMBED_*`. There are no others, and new settings get none.
- `$__nanograph_now` is the parameter that holds the value of `now()` in a plan. Queries cannot declare it, and callers
  cannot pass it.
"""

from __future__ import annotations

NOW_PARAMETER = "__nanograph_now"
MOCK_VARIABLE = "NANOGRAPH_EMBEDDINGS_MOCK"
MODEL_VARIABLE = "NANOGRAPH_EMBED_MODEL"
EMBED_PREFIX = "NANOGRAPH_EMBED_"
SETTINGS_PREFIX = "NANOGRAPH_"

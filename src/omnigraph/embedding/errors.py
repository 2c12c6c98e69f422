"""What can go wrong between a text and its vector.

    OmniGraphError
    ├─ EmbeddingError       the operator can fix it: configuration, the provider, or what it answered
    └─ InputError
       └─ ModelMismatch     the caller can fix it: vectors of two models are not comparable

Neither ever holds a key. The texts are not quoted either, though a provider's own words may repeat them.
"""

from __future__ import annotations

from omnigraph.errors import InputError, OmniGraphError


class EmbeddingError(OmniGraphError):
    """A text could not be embedded; `text_index` is the first text concerned, where one is known."""

    default_code = "embedding_error"

    def __init__(
        self, message: str, *, code: str | None = None, hint: str | None = None, text_index: int | None = None
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.text_index = text_index


class ModelMismatch(InputError):
    """Stored vectors were made by another model than the one that is configured."""

    default_code = "model_mismatch"

    def __init__(self, subject: str, *, recorded: str, resolved: str) -> None:
        super().__init__(
            f"{subject} records the embedding model '{recorded}', but the configured one is '{resolved}', and vectors "
            f"of two models cannot be compared: set OMNIGRAPH_EMBED_MODEL to '{recorded}' together with its provider, "
            "or re-embed the stored vectors with the configured model",
        )
        self.recorded = recorded
        self.resolved = resolved

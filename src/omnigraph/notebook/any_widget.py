"""The widget by `anywidget`; imported only if the package is installed."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from omnigraph.notebook.widget import Answers, module_text


class GraphWidget(anywidget.AnyWidget):
    """A picture with list, properties and table. `selected` has the nodes that are selected in it."""

    _esm = module_text()
    document = traitlets.Dict().tag(sync=True)
    selected = traitlets.List(traitlets.Dict()).tag(sync=True)

    def __init__(self, answers: Answers, static: str) -> None:
        self._answers = answers
        self._static = static
        super().__init__(document=answers.document())
        self.on_msg(self._receive)

    def _receive(self, _: Any, content: Any, __: Any) -> None:
        if isinstance(content, dict):
            self.send(self._answers.answer(content))

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Add the static form, for notebooks that are shown without Python."""
        bundle = super()._repr_mimebundle_(**options)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**(data or {}), "text/html": self._static}, metadata

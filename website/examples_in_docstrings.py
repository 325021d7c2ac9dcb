"""A griffe extension: examples in docstrings are code wherever they stand; fields of dataclasses have their comments."""

import re
from typing import Any

from griffe import Attribute, Docstring, Extension, Object

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\n).+)*", re.MULTILINE)


class ExamplesAsCode(Extension):
    """Puts each example into a fence."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of an object that was read."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)

    def on_attribute(self, *, attr: Attribute, **_: Any) -> None:
        """Take the comment beside a field of a dataclass for its docstring."""
        if attr.docstring is None and attr.parent is not None and "dataclass" in attr.parent.labels:
            comment = attr.source.partition("  # ")[2].strip()
            if comment:
                attr.docstring = Docstring(comment[0].upper() + comment[1:], parent=attr)

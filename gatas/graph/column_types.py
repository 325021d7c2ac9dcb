"""Types of Arrow columns: which hold text, numbers or lists, and columns without dictionaries or chunks."""

from pathlib import Path
from typing import Any

import pyarrow as pa


def is_text(values: Any) -> bool:
    """Whether a column holds text."""
    return is_text_type(values.type)


def is_text_type(kind: Any) -> bool:
    """Whether columns of this type hold text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_number_column(values: Any) -> bool:
    """Whether a column can serve as a feature."""
    kind = values.type
    return any(test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean))


def is_list(kind: Any) -> bool:
    """Whether columns of this type hold lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_text_file(path: str | Path) -> bool:
    """Whether a file's types are guessed from text."""
    return not str(path).lower().endswith(".parquet")


def plain_type(kind: Any) -> Any:
    """Return the type of values that may be held in a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def decoded(values: Any) -> Any:
    """Return a column without its dictionary, if it has one."""
    return values.cast(plain_type(values.type)) if pa.types.is_dictionary(values.type) else values


def joined(values: Any) -> Any:
    """Return a column as one array."""
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values

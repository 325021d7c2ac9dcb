"""Sparse features in a file of their own (`scipy.sparse.save_npz`), taken for two columns of lists of the node table."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
from scipy import sparse

from gatas.datasets.config import TableData, is_feature_file
from gatas.datasets.node_table import check_features
from gatas.errors import GraphError
from gatas.graph.tables import Table


class FeatureFile(NamedTuple):
    """A file of features: its name, and how many columns it has."""

    file: str
    width: int


NO_FILES: Mapping[str, FeatureFile] = MappingProxyType({})


class WithFiles(NamedTuple):
    """A node table with columns from files, settings that name these columns, and the files by column."""

    table: Table
    config: TableData
    files: Mapping[str, FeatureFile]


def with_feature_files(table: Table, config: TableData) -> WithFiles:
    """Add the files that `features` names as columns, `words` and `words_values` for words.npz; settings then name these."""
    indices, features, files = dict(config.indices), list[str](), dict[str, FeatureFile]()
    for name in config.features or ():
        column = name
        if is_feature_file(name):
            path = Path(name)
            column = path.stem
            table, files[column] = with_feature_file(table, path, column)
            indices[column] = values_name(column)
        features.append(column)
    if not files:
        return WithFiles(table, config, NO_FILES)
    return WithFiles(table, config.model_copy(update={"features": tuple(features), "indices": indices}), files)


def with_feature_file(table: Table, path: Path, name: str) -> tuple[Table, FeatureFile]:
    """Add a file's indices as a column, and its values as another."""
    matrix = read_sparse(path, table)
    columns = {name: _lists(matrix, matrix.indices), values_name(name): _lists(matrix, matrix.data)}
    for column in columns:
        if column in table.others or column in table.column_names.values():
            raise GraphError(
                f"{table.path} has a column {column!r}, and {path.name} is taken for one of that name. Rename one of them."
            )
    return replace(table, others={**table.others, **columns}), FeatureFile(path.name, int(matrix.shape[1]))


def values_name(name: str) -> str:
    """Return what the column of values of a file's indices is called."""
    return f"{name}_values"


def read_sparse(path: Path, table: Table) -> sparse.csr_array:
    """Read a sparse matrix with a row for each row of the node table."""
    try:
        matrix = sparse.load_npz(path)
    except FileNotFoundError:
        raise GraphError(f"{path} does not exist or is not a file; data.features names it.") from None
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, AttributeError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise GraphError(
            f"{path} could not be read as a sparse matrix: {reason} Write it with scipy.sparse.save_npz."
        ) from error
    if matrix.shape[0] != table.num_rows:
        raise GraphError(
            f"{path} has {matrix.shape[0]:,} rows; expected one for each of the {table.num_rows:,} rows of {table.path}, in "
            "their order."
        )
    try:
        return _sparse(check_features(matrix, table.num_rows))
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from None


def _sparse(features: Any) -> sparse.csr_array:
    return sparse.csr_array(features)


def _lists(matrix: sparse.csr_array, flat: Any) -> Any:
    """Return the numbers of each row as a list, over the same memory."""
    wide = matrix.indptr.dtype == np.int64 or matrix.nnz >= 2**31
    kind, index = (pa.LargeListArray, np.int64) if wide else (pa.ListArray, np.int32)
    return kind.from_arrays(pa.array(matrix.indptr.astype(index, copy=False)), pa.array(flat))

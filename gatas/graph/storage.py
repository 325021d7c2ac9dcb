"""Folders of .npy files with a manifest: written whole or not at all, mapped on opening, refused when damaged.

    folder/manifest.json     format, kind, parameters, and for each file its dtype, shape, size and sha256
    folder/<name>.npy

A killed write leaves the target as it was (`gatas.files.atomic_folder`).
"""

import json
import math
import re
import stat
import tokenize
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.errors import StoreError
from gatas.files import (
    ChecksumWriter,
    RunningChecksum,
    atomic_folder,
    canonical_json,
    check_free_space,
    checksum_of_json,
    interrupted_overwrite,
    link_or_copy,
    reason,
    recover_overwritten,
    remove_leftovers,
    verify_checksum,
)
from gatas.graph.inputs import frozen

FORMAT = 2
"""Format 1 is that of gatas 0.1: graphs without `inverse_of`, and node data kept with the graph."""
MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 64 << 20
FILE_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,99}\.npy")
DTYPES = ("uint8", "int8", "int16", "int32", "int64", "float32", "float64")

NamedArrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Streamed:
    """An array that is written as it comes, in pieces along its first dimension: never whole in memory."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[NDArray[Any]]]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


Written = Mapping[str, NDArray[Any] | Streamed]


@dataclass(frozen=True)
class Store:
    """What a folder holds: read-only arrays by name, and the parameters they were made with."""

    folder: Path
    arrays: NamedArrays
    parameters: Mapping[str, Any]

    def parameter(self, name: str) -> Any:
        if name not in self.parameters:
            raise StoreError(f"{self.folder / MANIFEST} lacks the parameter {name!r}. Write the folder again.")
        return self.parameters[name]

    def array(self, name: str) -> NDArray[Any]:
        if name not in self.arrays:
            raise StoreError(f"{self.folder / MANIFEST} lists no {name}.npy. Write the folder again.")
        return self.arrays[name]


def write_store(folder: Path, kind: str, arrays: Written, parameters: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write `arrays` and `parameters` to `folder`, which must not exist unless it is to be overwritten."""
    folder = Path(folder).resolve()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)  # it may put back what the target was
        _check_target(folder, overwrite)
        check_free_space(folder.parent, sum(array.nbytes for array in arrays.values()))
        with atomic_folder(folder, overwrite=overwrite) as temporary:
            _fill(temporary, kind, arrays, parameters)
    except OSError as error:
        raise StoreError(f"{folder} could not be written: {reason(error)}. Nothing was changed there.") from error


def open_store(folder: Path, kind: str | tuple[str, ...], *, verify: bool = False) -> Store:
    """Map the arrays of a folder; sizes, types and names are always checked, with `verify` also every byte."""
    folder = Path(folder)
    try:
        manifest = _read_manifest(folder, kind)
        arrays = {name[:-4]: _open_array(folder, name, entry, verify) for name, entry in manifest["files"].items()}
    except OSError as error:
        raise StoreError(f"{folder} could not be read: {reason(error)}.") from error
    return Store(folder, arrays, manifest["parameters"])


def copy_store(source: Path, target: Path, *, overwrite: bool = False) -> None:
    """Copy a store: files are linked where the disk allows it, and take no room twice."""
    source, target = Path(source).resolve(), Path(target).resolve()
    if source == target:
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target)  # it may put back what the target was
        _check_target(target, overwrite)
        with atomic_folder(target, overwrite=overwrite) as temporary:
            for file in sorted(source.iterdir()):
                if not file.name.startswith("."):  # a note on the ingest that wrote it is no part of it
                    link_or_copy(file, temporary / file.name)
    except OSError as error:
        raise StoreError(f"{target} could not be written: {reason(error)}. Nothing was changed there.") from error


def verify_store(folder: Path) -> None:
    """Read every byte of a store, whatever it holds."""
    try:
        kind = json.loads((folder / MANIFEST).read_bytes())["kind"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        kind = ""  # what is wrong is said on opening
    open_store(folder, kind, verify=True)


def store_fingerprint(folder: Path, kind: str | tuple[str, ...]) -> str:
    """Hash what a folder holds, by its manifest alone, which has the checksums of its files."""
    try:
        manifest = _read_manifest(Path(folder), kind)
    except OSError as error:
        raise StoreError(f"{folder} could not be read: {reason(error)}.") from error
    return checksum_of_json(manifest)


def fingerprint(arrays: Mapping[str, NDArray[Any]], parameters: Mapping[str, Any]) -> str:
    """A hash of content: equal for equal graphs, wherever they are kept."""
    digest = RunningChecksum(canonical_json(parameters))
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.data.cast("B") if array.size else b"")
    return digest.hexdigest()


def _fill(folder: Path, kind: str, arrays: Written, parameters: Mapping[str, Any]) -> None:
    files = {}
    for name, array in arrays.items():
        assert FILE_NAME.fullmatch(f"{name}.npy") and array.dtype.name in DTYPES, name
        with (folder / f"{name}.npy").open("wb") as file:
            writer = ChecksumWriter(file)
            _write_array(writer, array)
            size = file.tell()
        files[f"{name}.npy"] = {
            "dtype": array.dtype.name,
            "shape": list(array.shape),
            "bytes": size,
            "sha256": writer.hexdigest(),
        }
    content = {"format": FORMAT, "kind": kind, "parameters": dict(parameters), "files": files}
    content["sha256"] = checksum_of_json(content)
    (folder / MANIFEST).write_bytes(json.dumps(content, indent=1, ensure_ascii=False).encode())


def _write_array(file: ChecksumWriter, array: NDArray[Any] | Streamed) -> None:
    if not isinstance(array, Streamed):
        np.lib.format.write_array(file, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
        return
    descr = np.lib.format.dtype_to_descr(array.dtype)
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": array.shape})
    size = sum(file.write(np.ascontiguousarray(piece, array.dtype).tobytes()) for piece in array.pieces())
    assert size == array.nbytes, (size, array.nbytes)


def _check_target(folder: Path, overwrite: bool) -> None:
    if not folder.exists():
        return
    if not overwrite:
        raise StoreError(f"{folder} exists already. Choose another folder, or overwrite it (overwrite=True, --overwrite).")
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        ours = {"format", "kind", "files", "parameters", "sha256"} <= set(manifest)
    except (OSError, ValueError, TypeError, RecursionError):
        ours = False
    if not ours:
        raise StoreError(f"{folder} is not a folder that gatas wrote (no {MANIFEST} of ours), so it is left alone. "
                         "Choose another, or remove it yourself.")  # fmt: skip


def _read_manifest(folder: Path, kind: str | tuple[str, ...]) -> dict[str, Any]:
    path = folder / MANIFEST
    recover_overwritten(folder)
    if not folder.is_dir():
        old = interrupted_overwrite(folder)
        hint = f" It is being overwritten, or this was cut short: wait, or rename {old} to {folder}." if old is not None else ""
        raise StoreError(f"{folder} is not a folder; expected one that gatas wrote.{hint}")
    if not path.is_file() or path.is_symlink():
        raise StoreError(f"{folder} has no {MANIFEST}; expected a folder that gatas wrote.")
    damaged = StoreError(f"{path} is damaged. Restore it from a copy, or write the folder again.")
    if path.stat().st_size > MAX_MANIFEST_BYTES:
        raise damaged
    try:
        manifest = json.loads(path.read_bytes())
        recorded = manifest.pop("sha256")
        version, found, files, parameters = (manifest[key] for key in ("format", "kind", "files", "parameters"))
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise damaged from error
    if version != FORMAT:
        raise StoreError(
            f"{path} has format {version!r}, but this version of gatas reads format {FORMAT}. {_what_to_do(version)}"
        )
    if recorded != checksum_of_json(manifest):
        raise damaged
    kinds = (kind,) if isinstance(kind, str) else kind
    if found not in kinds:
        raise StoreError(f"{folder} holds {found!r}, not {' or '.join(map(repr, kinds))}.")
    if not isinstance(files, dict) or not isinstance(parameters, dict):
        raise damaged
    return {"files": files, "parameters": parameters}


def _what_to_do(version: Any) -> str:
    if version == 1:
        return "It was written by gatas 0.1: write it again, with `gatas ingest`, `gatas transitions build` or Graph.save."
    return "Update gatas."


def _open_array(folder: Path, name: str, entry: Any, verify: bool) -> NDArray[Any]:
    path = folder / name
    if not FILE_NAME.fullmatch(name):
        raise StoreError(f"{folder / MANIFEST} lists a file named {name!r}; only plain .npy names are followed.")
    try:
        dtype, shape, size, recorded = entry["dtype"], tuple(entry["shape"]), int(entry["bytes"]), entry["sha256"]
        mode = path.lstat()
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{folder / MANIFEST} describes {name} incompletely. Write the folder again.") from error
    except FileNotFoundError as error:
        raise StoreError(f"{path} is missing. Restore it from a copy, or write the folder again.") from error
    if not stat.S_ISREG(mode.st_mode):
        raise StoreError(f"{path} is a link or not a plain file, and is not followed.")
    if mode.st_size != size:
        raise StoreError(f"{path} has {mode.st_size:,} bytes, but {size:,} were written: it is truncated or damaged.")
    if dtype not in DTYPES or not all(isinstance(length, int) and length >= 0 for length in shape):
        raise StoreError(f"{folder / MANIFEST} gives {name} the type {dtype!r} and shape {shape}. Write the folder again.")
    if verify:
        verify_checksum(path, recorded)
    return _mapped(path, np.dtype(dtype).newbyteorder("<"), shape)


def _mapped(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """A read-only map of a file whose header says what the manifest says; its content is never unpickled or allocated."""
    with path.open("rb") as file:
        try:
            if np.lib.format.read_magic(file) != (1, 0):
                raise ValueError("not version 1.0 of the format")
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # numpy warns of headers that it had to mend
                found, fortran_order, found_dtype = np.lib.format.read_array_header_1_0(file)
        except (ValueError, TypeError, EOFError, SyntaxError, Warning, tokenize.TokenError) as error:
            raise StoreError(f"{path} is not the .npy file that was written: its header is damaged.") from error
        offset, length = file.tell(), path.stat().st_size
    if found_dtype != dtype or found != shape or fortran_order:
        raise StoreError(f"{path} holds {found_dtype} {found}, but {dtype} {shape} was written: it is damaged.")
    if offset + math.prod(shape) * dtype.itemsize != length:
        raise StoreError(f"{path} has {length:,} bytes, which is not what {dtype} {shape} takes: it is damaged.")
    if not all(shape):
        return frozen(np.empty(shape, dtype))  # nothing cannot be mapped
    return np.asarray(np.memmap(path, dtype, mode="r", offset=offset, shape=shape))

"""Arrays in files: a disk that is full is noticed, be it for the last bytes alone."""

import errno
from contextlib import suppress

import numpy as np
import pytest

from gatas.graph.arrays import ArrayWriter, collected, mapped


@pytest.mark.parametrize("length", [1, 100_000])
def test_a_full_disk_is_noticed(tmp_path, length):
    (tmp_path / "values.bin").symlink_to("/dev/full")
    writer = ArrayWriter(tmp_path, "values", np.int64)
    with pytest.raises(OSError) as raised:
        writer.append(np.arange(length))
        writer.finish()
    assert raised.value.errno == errno.ENOSPC
    with suppress(OSError):
        writer.file.close()


def test_what_was_appended_is_mapped(tmp_path):
    writer = ArrayWriter(tmp_path, "values", np.int32)
    for piece in (np.arange(5)[::2], np.empty(0), np.array([[7, 8]])):
        writer.append(piece)
    assert mapped(tmp_path, "values", writer.finish()).tolist() == [0, 2, 4, 7, 8]


@pytest.mark.parametrize("in_files", [False, True])
def test_pieces_are_collected_in_memory_and_in_files(tmp_path, in_files):
    pieces = ({"values": np.arange(first, first + 3)} for first in (0, 3))
    found = collected(pieces, {"values": np.float32}, tmp_path if in_files else None)
    assert found["values"].dtype == np.float32 and found["values"].tolist() == [0, 1, 2, 3, 4, 5]
    assert not list(tmp_path.iterdir())

"""Durable files: the only place of the package that renames, syncs, locks, or computes checksums.

Functions raise `OSError` where the system refuses; callers say what this means for their user. Content that is not what was
written raises `StoreError`.
"""

from gatas.files.atomic import (
    append_to_file,
    atomic_file,
    atomic_file_with_checksum,
    atomic_folder,
    interrupted_overwrite,
    link_or_copy,
    recover_overwritten,
    remove,
    remove_all_leftovers_within,
    remove_folder,
    remove_leftovers,
    remove_leftovers_within,
    write_file,
)
from gatas.files.checksums import (
    ChecksumWriter,
    RunningChecksum,
    canonical_json,
    checksum,
    checksum_of,
    checksum_of_json,
    read_signed_json,
    signed_json,
    verify_checksum,
    verify_checksums,
    verify_file,
)
from gatas.files.disk import (
    FileLock,
    alone_in,
    check_free_space,
    is_disk_full,
    reason,
)

__all__ = [
    "ChecksumWriter",
    "FileLock",
    "RunningChecksum",
    "alone_in",
    "append_to_file",
    "atomic_file",
    "atomic_file_with_checksum",
    "atomic_folder",
    "canonical_json",
    "check_free_space",
    "checksum",
    "checksum_of",
    "checksum_of_json",
    "interrupted_overwrite",
    "is_disk_full",
    "link_or_copy",
    "read_signed_json",
    "reason",
    "recover_overwritten",
    "remove",
    "remove_all_leftovers_within",
    "remove_folder",
    "remove_leftovers",
    "remove_leftovers_within",
    "signed_json",
    "verify_checksum",
    "verify_checksums",
    "verify_file",
    "write_file",
]

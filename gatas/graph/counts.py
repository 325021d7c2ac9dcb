"""`counted`: numbers of things as people read them."""


def counted(count: int, one: str, many: str = "") -> str:
    """Return `1 class`, or `4 classes`."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"

"""`python -m gatas` is the `gatas` command; so is `torchrun ... -m gatas`."""

from gatas.cli import main

if __name__ == "__main__":
    main()

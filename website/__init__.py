"""What `mkdocs build` needs besides docs/: generated reference pages, and files of the repository that pages link to."""

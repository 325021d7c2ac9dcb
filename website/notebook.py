"""The notebook of the quick start. `python -m website.notebook` runs its cells and keeps what they show.

Cells are run without Jupyter, which is not needed for anything else: what is printed, the last expression of a cell and the
figures of matplotlib are shown.
"""

import ast
import base64
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[1] / "docs/quick-start.ipynb"
DOWNLOAD = "[Download this notebook](quick-start.ipynb), or read it here with what its cells show.\n"


def page() -> str:
    """The notebook as Markdown, with what its cells showed when it was last run."""
    first, *others = (as_markdown(cell) for cell in read()["cells"])
    return "\n\n".join([first.replace("# Quick start", "# Quick start as a notebook", 1), DOWNLOAD, *others])


def read() -> dict[str, Any]:
    """The notebook, as it is stored."""
    found: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return found


def as_markdown(cell: dict[str, Any]) -> str:
    """A cell: its text, or its code and what that showed."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    return "\n\n".join([f"```python\n{source}\n```", *map(shown, cell["outputs"])])


def shown(output: dict[str, Any]) -> str:
    """One output of a cell."""
    if "text" in output:
        return fenced("".join(output["text"]))
    if "image/png" in output["data"]:
        return f"![What the cell draws](data:image/png;base64,{''.join(output['data']['image/png']).strip()})"
    return fenced("".join(output["data"]["text/plain"]))


def fenced(text: str) -> str:
    """Text that a cell printed, below its code."""
    return f"```text\n{text.rstrip()}\n```"


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its cells, run from top to bottom in the folder at hand."""
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"], cell["outputs"] = count, outputs_of("".join(cell["source"]), names, count)
    return notebook


def outputs_of(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Run a cell, and collect what it prints, its last expression if that is not None, and its figures."""
    body = ast.parse(source).body
    last = ast.Expression(body.pop().value) if isinstance(body[-1], ast.Expr) else None  # type: ignore[attr-defined]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), f"<cell {count}>", "exec"), names)
        value = eval(compile(last, f"<cell {count}>", "eval"), names) if last is not None else None
    text = printed.getvalue()
    found: list[dict[str, Any]] = [{"output_type": "stream", "name": "stdout", "text": text}] if text else []
    if value is not None:
        found.append(
            {"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": {"text/plain": repr(value)}}
        )
    return [*found, *figures()]


def figures() -> list[dict[str, Any]]:
    """The figures that a cell left open, which are then closed."""
    import matplotlib.pyplot as plt

    found = []
    for number in plt.get_fignums():
        buffer = io.BytesIO()
        plt.figure(number).savefig(buffer, format="png", dpi=100, metadata={"Software": None})
        data = {"image/png": base64.b64encode(buffer.getvalue()).decode(), "text/plain": "<Figure>"}
        found.append({"output_type": "display_data", "metadata": {}, "data": data})
    plt.close("all")
    return found


def main() -> None:
    """Run the cells in a folder of their own, and store the notebook with what they show."""
    os.environ["MPLBACKEND"] = "agg"
    notebook = read()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run(notebook)
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Files that are written atomically, CSV cells that a spreadsheet does not run, and HTML, LaTeX and Markdown tables."""

import contextlib
import gzip
import html
import io
import os
import re
import secrets
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from .errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # text that a spreadsheet may run, also after apostrophes
NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|nan)", re.ASCII | re.IGNORECASE)

LATEX = {character: f"\\{character}" for character in "{}$&#%_"}
LATEX |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}"}
LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", '"': "{''}", "`": r"\textasciigrave{}"}
LATEX |= {"–": "--", "—": "---", "…": r"\dots{}", "−": "$-$", "½": r"$\frac12$"}
SIGNS = {"±": "pm", "×": "times", "·": "cdot", "≤": "leq", "≥": "geq", "≠": "neq", "≈": "approx", "∞": "infty"}
SIGNS |= {"≻": "succ", "≺": "prec", "→": "to", "←": "gets", "√": "surd"}
GREEK = (
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon varphi chi"
)
GREEK += " psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
SIGNS |= dict(zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ", GREEK.split(), strict=True))
LATEX |= {sign: rf"$\{command}$" for sign, command in SIGNS.items()}
LIGATURES = re.compile("[-–—][-–—]|''|,,")  # two signs of which LaTeX makes another one
SUPERSCRIPT = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-"))
MARKDOWN = re.compile(r"([\\`*_\[\]<>|~&#$])")


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Write a file atomically: it appears complete or not at all.

    Args:
        path: The file to write. An existing file is replaced.

    Yields:
        A temporary path to write to. It is moved to `path` when the block ends without an error.

    Raises:
        InvalidInput: If the path is a folder or cannot be written.

    Example:
        >>> with atomic_write(Path("numbers.txt")) as unfinished:
        ...     unfinished.write_text("1 2 3")
    """
    if not path.name or path.is_dir():
        raise InvalidInput(f"{path} is a folder: expected the name of a file to write")
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield unfinished
        os.replace(unfinished, path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_open(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing bytes atomically; a path that ends in .gz is compressed."""
    with atomic_write(path) as unfinished, unfinished.open("wb") as raw:
        if path.suffix.lower() == ".gz":
            with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
                yield packed  # type: ignore[misc]
        else:
            yield raw


def pack_arrays(arrays: "Mapping[str, np.ndarray]") -> bytes:
    """Return arrays as a compressed file that `numpy.load` reads; fast, and nearly as small as the smallest."""
    import numpy as np

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, values, allow_pickle=False)
    return file.getvalue()


def safe_cell(cell: str) -> str:
    """Put an apostrophe before the text of a CSV cell if a spreadsheet would run it as a formula.

    Numbers are not changed. Text that already has such apostrophes gets one more, so that `read_cell` returns every
    text exactly.
    """
    return f"'{cell}" if FORMULA.match(cell) and not NUMBER.fullmatch(cell) else cell


def read_cell(cell: str) -> str:
    """Undo `safe_cell` for a cell of a file that Duels or a spreadsheet wrote."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def cache_folder() -> Path:
    """Return the folder for cached files: `$DUELS_CACHE`, else `$XDG_CACHE_HOME/duels`, else `~/.cache/duels`.

    Raises:
        RuntimeError: If there is no home directory.
    """
    if own := os.environ.get("DUELS_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "duels"


def html_table(
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    note: str = "",
    strong: Collection[tuple[int, int]] = (),
) -> str:
    """Format a table as HTML for notebooks; all text is escaped.

    Args:
        title: The text above the table.
        head: The column headings.
        rows: The cells; the first of each row is a heading too.
        note: The text below the table.
        strong: The cells, as (row, column), that are bold.
    """

    def cell(text: str, row: int, column: int) -> str:
        text = html.escape(text)
        if column == 0:
            return f'<th scope="row" style="text-align: left">{text}</th>'
        return f'<td style="text-align: right">{f"<b>{text}</b>" if (row, column) in strong else text}</td>'

    top = "".join(
        f'<th scope="col" style="text-align: {"right" if k else "left"}">{html.escape(one)}</th>'
        for k, one in enumerate(head)
    )
    body = "".join(
        f"<tr>{''.join(cell(text, i, j) for j, text in enumerate(row))}</tr>\n" for i, row in enumerate(rows)
    )
    below = f"<p><small>{html.escape(note)}</small></p>" if note else ""
    table = f"<table>\n<thead><tr>{top}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"
    return f"<p><b>{html.escape(title)}</b></p>\n{table}\n{below}"


def latex_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: Collection[int] = (),
    bold: Collection[tuple[int, int]] = (),
) -> str:
    """Format a table as a LaTeX `tabular` for the package booktabs; all text is escaped.

    Args:
        head: The column headings.
        rows: The cells.
        right: The columns, by number, that are aligned to the right.
        bold: The cells, by row and column, that are in bold.
    """
    kinds = "".join("r" if place in right else "l" for place in range(len(head)))
    cells = [list(map(latex_text, row)) for row in [head, *rows]]
    for row, column in bold:
        # \boldmath is for signs such as ±.
        cells[row + 1][column] = rf"\textbf{{\boldmath {cells[row + 1][column]}}}"
    lines = [" & ".join(row) + r" \\" for row in cells]
    lines = [f"{{}}{line}" if line[0] in "[*" else line for line in lines]  # else the line before would take it
    begin, end = rf"\begin{{tabular}}{{{kinds}}}", r"\end{tabular}"
    return "\n".join([begin, r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule", end])


def latex_text(text: str) -> str:
    """Escape a text for LaTeX; signs, Greek letters and superscripts become mathematics, and a line break a space.

    Letters of other scripts stay as they are: for these, use XeLaTeX or LuaLaTeX.
    """
    parts = re.split(f"([{''.join(SUPERSCRIPT)}]+)", " ".join(text.split()))
    for place, part in enumerate(parts):
        if place % 2:
            parts[place] = f"$^{{{''.join(SUPERSCRIPT[character] for character in part)}}}$"
        else:
            following = zip(part, part[1:] + " ")
            parts[place] = "".join(
                LATEX.get(one, one) + "{}" * bool(LIGATURES.match(one + then)) for one, then in following
            )
    return "".join(parts)


def markdown_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: Collection[int] = (),
    bold: Collection[tuple[int, int]] = (),
) -> str:
    """Format a table as GitHub's Markdown; all text is escaped. The arguments are those of `latex_table`."""
    marks = ["--:" if place in right else "---" for place in range(len(head))]
    lines = [[markdown_text(cell) for cell in row] for row in [head, *rows]]
    for row, column in bold:
        lines[row + 1][column] = f"**{lines[row + 1][column]}**"
    return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], marks, *lines[1:]])


def markdown_text(text: str) -> str:
    """Escape a text for a cell of a Markdown table; a line break becomes a space."""
    return MARKDOWN.sub(r"\\\1", " ".join(text.split()))

"""Problems by name: small matrices from the literature, generated families, and matrix files.

The name of a problem may have parameters: `"bradley-terry:arms=16,spread=0.5,seed=3"`.
"""

import csv
import inspect
import io
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from . import specs
from .errors import InvalidInput, UnknownName, shorten
from .files import atomic_write, read_cell, safe_cell
from .preference import PreferenceMatrix

SUFFIXES = (".csv", ".txt", ".npy", ".npz")
MOST_ARMS = 10_000  # a matrix of this size already takes 0.8 GB
WU = "Wu & Liu, NIPS 2016, appendix D.1.3"
Rows = list[tuple[int, list[str]]]  # line number, entries
KOMIYAMA = "Komiyama, Honda, Kashima & Nakagawa, COLT 2015"


class ProblemInfo(NamedTuple):
    """A named problem or family of problems."""

    name: str
    parameters: dict[str, specs.Value]  # parameter -> default
    summary: str
    reference: str


Build = Callable[..., PreferenceMatrix]
# name -> the function that builds it, and a reference. Its signature gives the parameters, its docstring the summary.
_families: dict[str, tuple[Build, str]] = {}


def load_problem(spec: str, /, **parameters: specs.Value) -> PreferenceMatrix:
    """Build a named problem.

    Args:
        spec: A name, with or without parameters; `list_problems` lists them.
        **parameters: More parameters. They override those in `spec`.

    Raises:
        UnknownName: If there is no such problem or parameter.
        InvalidInput: If a parameter has a wrong value.

    Example:
        >>> problem("linear:arms=4", seed=1).arms
        4
    """
    if not isinstance(spec, str):
        raise InvalidInput(f"{spec!r} is not a problem's name: expected a string such as 'linear:arms=8'")
    if Path(spec).suffix.lower() in SUFFIXES:
        raise InvalidInput(f"{spec!r} is a file: read it with duels.load_matrix")
    name, given = specs.split_spec(spec, "problem")
    defaults = _defaults(name)
    values = specs.fill(name, {**given, **parameters}, defaults, "duels experiment problems")
    built = _families[name][0](**values)
    return PreferenceMatrix(built.array, built.names, specs.join(name, values, defaults))


def list_problems() -> list[ProblemInfo]:
    """List all named problems and families, with their parameters and defaults."""
    return [
        ProblemInfo(name, _defaults(name), _summary(build), reference) for name, (build, reference) in _families.items()
    ]


def as_matrix(problem_like: ArrayLike | PreferenceMatrix | os.PathLike[str]) -> PreferenceMatrix:
    """Convert anything that describes a problem to a matrix.

    Args:
        problem_like: A `PreferenceMatrix`, an array, the path of a matrix file, or the name of a problem. A string is a
            path if it has a matrix file's suffix or a path separator; else it is taken as a name first.

    Raises:
        InvalidInput: If it is none of these, or the matrix is invalid.
    """
    if isinstance(problem_like, os.PathLike) or (isinstance(problem_like, str) and _is_path(problem_like)):
        return load_matrix(problem_like)
    if isinstance(problem_like, str):
        return load_problem(problem_like)
    if isinstance(problem_like, PreferenceMatrix):
        return problem_like
    if not isinstance(problem_like, list | tuple) and np.ndim(problem_like) == 0:  # None, a number, a dictionary
        raise InvalidInput(
            f"{shorten(problem_like)} is not a problem: expected a name such as 'arxiv-6', a matrix file or a matrix"
        )
    return PreferenceMatrix(problem_like)


def _is_path(text: str) -> bool:
    if Path(text).suffix.lower() in SUFFIXES or os.sep in text:
        return True
    return text.partition(":")[0].strip() not in _families and Path(text).is_file()


def _defaults(name: str) -> dict[str, specs.Value]:
    if name not in _families:
        raise UnknownName("problem", name, _families, see="duels experiment problems")
    return {key: p.default for key, p in inspect.signature(_families[name][0]).parameters.items()}


def _summary(build: Build) -> str:
    return (inspect.getdoc(build) or "").partition("\n")[0]


def _family(name: str, reference: str = "") -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        _families[name] = (build, reference)
        return build

    return register


@_family("arxiv-6", "Yue & Joachims, Beat the Mean Bandit, ICML 2011")
def _arxiv() -> PreferenceMatrix:
    """Six rankers of arXiv's full-text search, compared by interleaving."""
    return PreferenceMatrix(
        [
            [0.50, 0.55, 0.55, 0.54, 0.61, 0.61],
            [0.45, 0.50, 0.55, 0.55, 0.58, 0.60],
            [0.45, 0.45, 0.50, 0.54, 0.51, 0.56],
            [0.46, 0.45, 0.46, 0.50, 0.54, 0.50],
            [0.39, 0.42, 0.49, 0.46, 0.50, 0.51],
            [0.39, 0.40, 0.44, 0.50, 0.49, 0.50],
        ]
    )


@_family("arithmetic-8", KOMIYAMA)
def _arithmetic() -> PreferenceMatrix:
    """Eight arms in order: P[i, j] = 0.5 + 0.05 (j − i)."""
    return PreferenceMatrix((50 + 5 * (np.arange(8) - np.arange(8)[:, None])) / 100)


@_family("cyclic-4", KOMIYAMA)
def _cyclic() -> PreferenceMatrix:
    """A winner by 0.1 over three arms that beat each other in a cycle by 0.4."""
    return PreferenceMatrix([[0.5, 0.6, 0.6, 0.6], [0.4, 0.5, 0.9, 0.1], [0.4, 0.1, 0.5, 0.9], [0.4, 0.9, 0.1, 0.5]])


@_family("mslr-5", WU)
def _mslr() -> PreferenceMatrix:
    """Five rankers of Microsoft's learning-to-rank data, in order, under informational clicks."""
    return PreferenceMatrix(
        [
            [0.500, 0.535, 0.613, 0.757, 0.765],
            [0.465, 0.500, 0.580, 0.727, 0.738],
            [0.387, 0.420, 0.500, 0.659, 0.669],
            [0.243, 0.273, 0.341, 0.500, 0.510],
            [0.235, 0.262, 0.331, 0.490, 0.500],
        ]
    )


@_family("mslr-5-cycle", WU)
def _mslr_cycle() -> PreferenceMatrix:
    """Five rankers of the same data without a Condorcet winner: the first three beat each other in a cycle."""
    return PreferenceMatrix(
        [
            [0.500, 0.484, 0.519, 0.529, 0.518],
            [0.516, 0.500, 0.481, 0.530, 0.539],
            [0.481, 0.519, 0.500, 0.504, 0.512],
            [0.471, 0.470, 0.496, 0.500, 0.503],
            [0.482, 0.461, 0.488, 0.497, 0.500],
        ]
    )


@_family("bradley-terry", "Bradley & Terry, Biometrika 1952")
def _bradley_terry(arms: int = 16, spread: float = 1.0, seed: int = 0) -> PreferenceMatrix:
    """Arms with normal utilities of standard deviation `spread`; P[i, j] is the logistic function of u_i − u_j."""
    rng = _check_parameters("bradley-terry", arms, seed)
    if not 0 < spread < np.inf:
        raise InvalidInput(f"bradley-terry: spread = {spread:g}, expected a finite number above 0")
    utility = spread * rng.standard_normal(arms)
    return _complete_matrix(0.5 + 0.5 * np.tanh((utility[:, None] - utility) / 2))


@_family("linear", KOMIYAMA + " (arithmetic-8 is arms=8, largest_gap=0.35, shuffle=false)")
def _linear(arms: int = 8, largest_gap: float = 0.4, seed: int = 0, shuffle: bool = True) -> PreferenceMatrix:
    """Arms in order at equal steps, the first ahead of the last by `largest_gap`."""
    rng = _check_parameters("linear", arms, seed, largest_gap=largest_gap)
    rank = np.arange(arms)
    return _make_matrix(0.5 + (rank - rank[:, None]) / (arms - 1) * largest_gap, rng, shuffle)


@_family("hard-condorcet")
def _hard_condorcet(arms: int = 16, gap: float = 0.05, seed: int = 0, shuffle: bool = True) -> PreferenceMatrix:
    """A winner ahead of every arm by the same `gap`; all other pairs are even, so only its own duels help."""
    rng = _check_parameters("hard-condorcet", arms, seed, gap=gap)
    above = np.full((arms, arms), 0.5)
    above[0] += gap
    return _make_matrix(above, rng, shuffle)


@_family("borda-not-condorcet", "Zoghi, Whiteson, Munos & de Rijke, ICML 2014, section 2")
def _borda_not_condorcet(
    arms: int = 8, gap: float = 0.05, margin: float = 0.3, seed: int = 0, shuffle: bool = True
) -> PreferenceMatrix:
    """Arms in order, each ahead of all later ones by `gap`, but the second by `margin`: it is the Borda winner.

    Relaxed transitivity's γ is margin/gap.
    """
    rng = _check_parameters("borda-not-condorcet", arms, seed, fewest=3, gap=gap, margin=margin)
    # The second arm's Borda sum is (K−2)·margin − gap, the winner's (K−1)·gap.
    if not (arms - 2) * margin > arms * gap * (1 + 1e-6):
        raise InvalidInput(
            f"borda-not-condorcet: margin = {margin:g} leaves the winner ahead in Borda score too, "
            f"expected more than arms/(arms − 2)·gap = {arms / (arms - 2) * gap:g}"
        )
    above = np.full((arms, arms), 0.5 + gap)
    above[1] = 0.5 + margin
    return _make_matrix(above, rng, shuffle)


@_family("cycle-with-winner", KOMIYAMA + " (cyclic-4 is arms=4, shuffle=false)")
def _cycle_with_winner(
    arms: int = 8, gap: float = 0.1, cycle_gap: float = 0.4, seed: int = 0, shuffle: bool = True
) -> PreferenceMatrix:
    """A winner by `gap` over arms on a circle, each ahead by `cycle_gap` of the half that follows it.

    Arms that face each other across the circle are even.
    """
    rng = _check_parameters("cycle-with-winner", arms, seed, fewest=4, gap=gap, cycle_gap=cycle_gap)
    place = np.arange(arms)
    ahead = (place - place[:, None]) % (arms - 1)  # steps from i to j; the winner's row is set below
    above = 0.5 + cycle_gap * np.sign((arms - 1) - 2 * ahead)
    above[0] = 0.5 + gap
    return _make_matrix(above, rng, shuffle)


@_family("random-condorcet")
def _random_condorcet(arms: int = 16, gap: float = 0.02, seed: int = 0, shuffle: bool = True) -> PreferenceMatrix:
    """Uniformly random probabilities, and a winner whose gaps are uniform from `gap`, the smallest, to 0.5."""
    rng = _check_parameters("random-condorcet", arms, seed, gap=gap)
    above = rng.random((arms, arms))
    gaps = rng.uniform(gap, 0.5, arms - 1)
    gaps[gaps.argmin()] = gap
    above[0, 1:] = 0.5 + gaps
    return _make_matrix(above, rng, shuffle)


@_family("cycle", "rock, paper, scissors is arms=3")
def _cycle(arms: int = 5, gap: float = 0.2, seed: int = 0, shuffle: bool = True) -> PreferenceMatrix:
    """No Condorcet winner: arms on a circle, each ahead by `gap` of the half that follows it, so all are equal.

    With an even number, arms that face each other across the circle are even.
    """
    rng = _check_parameters("cycle", arms, seed, fewest=3, gap=gap)
    place = np.arange(arms)
    ahead = (place - place[:, None]) % arms  # steps from i to j
    return _make_matrix(0.5 + gap * np.sign(arms - 2 * ahead), rng, shuffle)


@_family("top-cycle")
def _top_cycle(
    arms: int = 8, top: int = 3, gap: float = 0.1, cycle_gap: float = 0.1, seed: int = 0, shuffle: bool = True
) -> PreferenceMatrix:
    """No Condorcet winner: `top` arms in a cycle, each ahead of all others, which are in order, by `gap`.

    The top arms are the Smith set and the Copeland winners.
    """
    rng = _check_parameters("top-cycle", arms, seed, fewest=4, gap=gap, cycle_gap=cycle_gap)
    if not 3 <= top < arms:
        raise InvalidInput(f"top-cycle: top = {top}, expected 3 to {arms - 1}, fewer than there are arms")
    place = np.arange(arms)
    ahead = (place - place[:, None]) % top
    above = np.full((arms, arms), 0.5 + gap)
    above[:top, :top] = 0.5 + cycle_gap * np.sign(top - 2 * ahead[:top, :top])
    return _make_matrix(above, rng, shuffle)


@_family("borda-not-copeland")
def _borda_not_copeland(
    arms: int = 7, gap: float = 0.05, margin: float = 0.3, seed: int = 0, shuffle: bool = True
) -> PreferenceMatrix:
    """No Condorcet winner: two Copeland winners, and a third arm in a cycle with them that is the Borda winner.

    Arms are ahead of later ones by `gap`. But the third arm beats the first, loses to the fourth, and beats all others
    by `margin`.
    """
    rng = _check_parameters("borda-not-copeland", arms, seed, fewest=5, gap=gap, margin=margin)
    above = np.full((arms, arms), 0.5 + gap)
    above[0, 2] = 0.5 - gap  # 0 beats 1, 1 beats 2, 2 beats 0
    above[2, 3] = 0.5 - gap
    above[2, 4:] = 0.5 + margin
    # Borda sums above ½ per pair: arm 0 has (K − 3)·gap and arm 1 too; arm 2 has (K − 4)·margin − gap.
    if not (arms - 4) * margin > (arms - 2) * gap * (1 + 1e-6):
        raise InvalidInput(
            f"borda-not-copeland: margin = {margin:g} leaves the Copeland winners ahead in Borda score too, "
            f"expected more than (arms − 2)/(arms − 4)·gap = {(arms - 2) / (arms - 4) * gap:g}"
        )
    return _make_matrix(above, rng, shuffle)


@_family("random-tournament")
def _random_tournament(arms: int = 8, gap: float = 0.02, seed: int = 0) -> PreferenceMatrix:
    """No Condorcet winner: each pair's winner is a fair coin's, by a margin uniform from `gap` to 0.5.

    Tournaments in which one arm beats all others are drawn again.
    """
    rng = _check_parameters("random-tournament", arms, seed, fewest=3, gap=gap)
    while True:
        above = 0.5 + rng.uniform(gap, 0.5, (arms, arms)) * rng.choice([-1.0, 1.0], (arms, arms))
        matrix = _complete_matrix(above)
        if matrix.condorcet_winner is None:
            return matrix


def _check_parameters(name: str, arms: int, seed: int, fewest: int = 2, **gaps: float) -> np.random.Generator:
    if not fewest <= arms <= MOST_ARMS:
        raise InvalidInput(f"{name}: arms = {arms}, expected {fewest} to {MOST_ARMS}")
    for key, gap in gaps.items():
        if not 0 < gap <= 0.5:
            raise InvalidInput(f"{name}: {key} = {gap:g}, expected above 0 and at most 0.5")
    if seed < 0:
        raise InvalidInput(f"{name}: seed = {seed}, expected 0 or more")
    return np.random.default_rng(seed)


def _make_matrix(above: np.ndarray, rng: np.random.Generator, shuffle: bool) -> PreferenceMatrix:
    """The completed matrix, its arms in random order: good arms must not have low indices."""
    matrix = _complete_matrix(above)
    order = rng.permutation(matrix.arms) if shuffle else np.arange(matrix.arms)
    return PreferenceMatrix(matrix.array[np.ix_(order, order)])


def _complete_matrix(above: np.ndarray) -> PreferenceMatrix:
    """The matrix with the given entries above the diagonal."""
    return PreferenceMatrix(np.triu(above, 1) + np.tril(1 - above.T, -1) + np.eye(len(above)) / 2)


def load_matrix(path: str | os.PathLike[str]) -> PreferenceMatrix:
    """Read a matrix from a .csv, .txt, .npy or .npz file.

    Tables may have a header row and a first column of names. A .txt file is separated by spaces, and `#` starts a
    comment.

    Raises:
        InvalidInput: If the file cannot be read, or does not hold a preference matrix.
    """
    path = Path(path)
    suffix = _check_suffix(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
    array, names = _read_binary(path, content) if suffix in (".npy", ".npz") else _read_text(path, content, suffix)
    try:
        return PreferenceMatrix(array, names, path.stem)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None


def save_matrix(matrix: PreferenceMatrix | ArrayLike, path: str | os.PathLike[str]) -> None:
    """Write a matrix to a .csv, .txt, .npy or .npz file that `load_matrix` reads back exactly.

    Args:
        matrix: The matrix.
        path: The file; an existing one is replaced atomically. An .npy file cannot hold names.

    Raises:
        InvalidInput: If the file cannot be written, or cannot hold the names.
    """
    path = Path(path)
    matrix = matrix if isinstance(matrix, PreferenceMatrix) else PreferenceMatrix(matrix)
    content = _encode_matrix(matrix, path, _check_suffix(path))
    with atomic_write(path) as unfinished:
        unfinished.write_bytes(content)


def check_matrix_path(path: str | os.PathLike[str]) -> None:
    """Check that `save_matrix` can write a named matrix to a path, before any work is done.

    Raises:
        InvalidInput: If it cannot.
    """
    path = Path(path)
    if _check_suffix(path) == ".npy":
        raise InvalidInput(f"{path}: an .npy file cannot hold the arms' names; save as .npz, .csv or .txt")
    if not path.parent.is_dir():
        raise InvalidInput(f"{path} cannot be written: there is no folder {str(path.parent)!r}")
    with atomic_write(path.with_name(f"{path.name}.probe")) as unfinished:
        unfinished.touch()
    path.with_name(f"{path.name}.probe").unlink()


def _check_suffix(path: Path) -> str:
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInput(f"{path}: unknown kind of file {path.suffix!r}, expected one of {', '.join(SUFFIXES)}")
    return path.suffix.lower()


def _encode_matrix(matrix: PreferenceMatrix, path: Path, suffix: str) -> bytes:
    rows = matrix.array.tolist()
    names = None if matrix.names == tuple(map(str, range(matrix.arms))) else matrix.names
    if suffix == ".csv":
        text = io.StringIO()
        writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        safe = [safe_cell(name) for name in names or ()]
        writer.writerows(rows if names is None else [["", *safe], *([n, *row] for n, row in zip(safe, rows))])
        return text.getvalue().encode()
    if suffix == ".txt":
        head = "" if names is None else f"# names: {json.dumps(names)}\n"
        return (head + "".join(" ".join(map(repr, row)) + "\n" for row in rows)).encode()
    if suffix == ".npy" and names is not None:
        raise InvalidInput(f"{path}: an .npy file cannot hold the arms' names; save as .npz, .csv or .txt")
    binary = io.BytesIO()
    if suffix == ".npy":
        np.save(binary, matrix.array)
    else:
        np.savez_compressed(binary, array=matrix.array, names=np.array(matrix.names))
    return binary.getvalue()


def _read_binary(path: Path, content: bytes) -> tuple[np.ndarray, list[str] | None]:
    try:
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        members = {"array": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except Exception:  # numpy, zipfile and zlib raise a dozen kinds for damaged files
        raise InvalidInput(
            f"{path} is damaged, or not an array of plain numbers: save it again with save_matrix"
        ) from None
    names = members.pop("names", None)
    if len(members) != 1:
        raise InvalidInput(f"{path} holds {len(members)} arrays, expected one matrix, and 'names' if they are known")
    return members.popitem()[1], None if names is None else np.atleast_1d(names).tolist()


def _read_text(path: Path, content: bytes, suffix: str) -> tuple[list[list[float]], list[str] | None]:
    try:
        text = content.decode("utf-8-sig")
        names, rows = _csv_rows(text) if suffix == ".csv" else _txt_rows(path, text)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{path} is not a table in UTF-8 text: {error}") from None
    if not rows:
        raise InvalidInput(f"{path} is empty, expected a row of numbers per arm")
    if suffix == ".csv" and len(rows[0][1]) == 1 and ";" in rows[0][1][0]:
        raise InvalidInput(f"{path} is separated by semicolons, expected commas: save it as plain csv")
    corner = rows[0][1][0] == ""
    header = rows.pop(0) if corner or not any(map(_is_number, rows[0][1])) else None
    if not rows:
        raise InvalidInput(f"{path} has no numbers below its header, expected a row of numbers per arm")
    one_more = header is not None and len(rows[0][1]) == len(rows) + 1
    labeled = corner or one_more or not any(_is_number(row[0]) for _, row in rows)
    array = _numbers(path, rows, first=1 if labeled else 0)
    return array, names or _table_names(path, header, rows, labeled)


def _csv_rows(text: str) -> tuple[None, Rows]:
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    rows = [(reader.line_num, row) for row in reader if len(row) > 1 or "".join(row).strip()]
    return None, [(line, list(map(read_cell, row))) for line, row in rows]


def _txt_rows(path: Path, text: str) -> tuple[list[str] | None, Rows]:
    names, rows = None, []
    for number, line in enumerate(text.split("\n"), 1):
        entries, _, comment = line.partition("#")
        if comment.startswith(" names: "):
            try:
                names = list(json.loads(comment.removeprefix(" names: ")))
            except (TypeError, ValueError):
                raise InvalidInput(f'{path}, line {number}: expected names as # names: ["a", "b"]') from None
        if entries.strip():
            rows.append((number, entries.split()))
    return names, rows


def _numbers(path: Path, rows: Rows, first: int) -> list[list[float]]:
    line, width = rows[0][0], len(rows[0][1])
    for number, row in rows:
        if len(row) != width:
            raise InvalidInput(f"{path}, line {number}: {len(row)} entries, expected {width} as in line {line}")
        for place, entry in enumerate(row[first:], first + 1):
            if not _is_number(entry):
                raise InvalidInput(f"{path}, line {number}, entry {place}: {entry!r} is not a number")
            if not math.isfinite(float(entry)):
                raise InvalidInput(f"{path}, line {number}, entry {place}: {entry!r}, expected a finite probability")
    return [[float(entry) for entry in row[first:]] for _, row in rows]


def _table_names(path: Path, header: tuple[int, list[str]] | None, rows: Rows, labeled: bool) -> list[str] | None:
    """The names from the header row and the first column, which must agree."""
    labels = [row[0] for _, row in rows] if labeled else None
    if header is None:
        return labels
    line, names = header
    width = len(rows[0][1])
    names = names[1:] if labeled and len(names) == width else names
    if len(names) != width - labeled:
        raise InvalidInput(f"{path}, line {line}: {len(names)} names over rows of {width - labeled} numbers")
    for (number, _), label, name in zip(rows, labels or names, names):
        if label != name:
            raise InvalidInput(f"{path}, line {number} is called {label!r}, expected {name!r} as in the header")
    return names


def _is_number(entry: str) -> bool:
    try:
        float(entry)
    except ValueError:
        return False
    return True

"""The compiled scanner of LETOR text: grades, queries and features of many lines at a time.

It reads lines in the usual form and stops before any other line. It reads a number if it is the product or quotient of
two exact doubles, which is correctly rounded and so equal to Python's `float`. It is 8 times as fast as splitting lines
in Python without checks, and 50 times as fast as `letor.read_line`.
"""

from typing import NamedTuple

import numpy as np

MOST_FEATURES = 65_535
EXACT = 1 << 53  # integers up to this are exact doubles,
POWERS = 10.0 ** np.arange(23)  # and so are these

NEWLINE, HASH, COLON, POINT, PLUS, MINUS = 10, 35, 58, 46, 43, 45


class Page(NamedTuple):
    """What the scanner found in a page of text, up to `counts`; rows are lines with a document."""

    grade: np.ndarray  # (rows,) int64
    line: np.ndarray  # (rows,) int64: lines of the page before this one
    query: np.ndarray  # (rows, 2) int64: where the query's id begins and ends in the text
    fresh: np.ndarray  # (rows,) bool: whether the query's id may differ from the previous row's
    comment: np.ndarray  # (rows, 2) int64: where the comment begins and ends
    entries: np.ndarray  # (rows,) int64: the row's features end before this entry
    feature: np.ndarray  # (entries,) int64: the feature's number, from 1
    value: np.ndarray  # (entries,) float64
    long: np.ndarray  # (entries, 3) int64: an entry with too many digits for the scanner; where its number begins, ends
    counts: np.ndarray  # (4,) int64: lines, rows, entries, long entries


def scan(text: np.ndarray, at: int, page: Page, powers: np.ndarray) -> int:
    """Read lines from `at` on, which must all end with a newline; return where the scan stopped."""
    size = len(text)
    while at < size:
        start = _skip_blanks(text, at)
        c = int(text[start])
        if c in (NEWLINE, HASH):
            at = _line_end(text, start) + 1
        else:
            end = _scan_row(text, start, page, powers)
            if end < 0:
                return at
            at = end
        page.counts[0] += 1
    return size


def spread(page: Page, features: np.ndarray, row: int) -> None:
    """Put the features of a page's rows into a table from `row` on."""
    entry = 0
    for k in range(page.counts[1]):
        while entry < page.entries[k]:
            features[row + k, page.feature[entry] - 1] = page.value[entry]
            entry += 1


def _scan_row(text: np.ndarray, at: int, page: Page, powers: np.ndarray) -> int:
    """Read one document's line and return where the next begins; -1, with nothing counted, if its form is unusual."""
    line, row, entry, odd = page.counts[0], page.counts[1], page.counts[2], page.counts[3]
    grade, start = 0, at
    while 48 <= text[at] <= 57 and at - start < 3:
        grade = grade * 10 + int(text[at]) - 48
        at += 1
    if at == start or not _is_blank(text[at]):
        return -1
    at = _skip_blanks(text, at)
    for c in (113, 105, 100, 58):  # qid:
        if text[at] != c:
            return -1
        at += 1
    start = at
    while text[at] != NEWLINE and not _is_blank(text[at]):
        at += 1
    if at == start:
        return -1
    page.grade[row], page.line[row] = grade, line
    page.query[row, 0], page.query[row, 1] = start, at
    page.fresh[row] = row == 0 or not _same(text, page.query[row - 1, 0], page.query[row - 1, 1], start, at)
    last = 0
    at = _skip_blanks(text, at)
    while text[at] != NEWLINE and text[at] != HASH:
        feature, start = 0, at
        while 48 <= text[at] <= 57 and at - start < 5:
            feature = feature * 10 + int(text[at]) - 48
            at += 1
        if feature <= last or feature > MOST_FEATURES or text[at] != COLON:
            return -1
        start = at + 1
        value, exact, at = _number(text, start, powers)
        if at < 0 or not (text[at] == NEWLINE or text[at] == HASH or _is_blank(text[at])):
            return -1
        page.feature[entry], page.value[entry] = feature, value
        if not exact:
            page.long[odd, 0], page.long[odd, 1], page.long[odd, 2] = entry, start, at
            odd += 1
        last = feature
        entry += 1
        at = _skip_blanks(text, at)
    end = _line_end(text, at)
    page.comment[row, 0], page.comment[row, 1] = min(at + 1, end), end
    page.entries[row] = entry
    page.counts[1], page.counts[2], page.counts[3] = row + 1, entry, odd
    return end + 1


def _number(text: np.ndarray, at: int, powers: np.ndarray) -> tuple[float, bool, int]:
    """The number that begins here, whether it is exact, and where it ends (-1: not a number)."""
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += 1
    digits, point, whole, scale, exact = 0, 0, 0, 0, True
    while 48 <= text[at] <= 57 or text[at] == POINT:
        if text[at] == POINT:
            point += 1
        else:
            digits += 1
            if whole < EXACT:
                whole = whole * 10 + int(text[at]) - 48
                scale -= point
            else:
                exact = False
        at += 1
    if digits == 0 or point > 1:
        return 0.0, False, -1
    if text[at] == 101 or text[at] == 69:  # e or E
        at += 1
        sign = -1 if text[at] == MINUS else 1
        if text[at] == MINUS or text[at] == PLUS:
            at += 1
        exponent, start = 0, at
        while 48 <= text[at] <= 57:
            exponent = min(exponent * 10 + int(text[at]) - 48, 100_000)
            at += 1
        if at == start:
            return 0.0, False, -1
        scale += sign * exponent
    if whole > EXACT or scale < -22 or scale > 22 or not exact:
        return 0.0, False, at
    value = whole * powers[scale] if scale >= 0 else whole / powers[-scale]
    return -value if negative else value, True, at


def _is_blank(c: int) -> bool:
    return c == 32 or c == 9 or 11 <= c <= 13


def _skip_blanks(text: np.ndarray, at: int) -> int:
    while _is_blank(text[at]):
        at += 1
    return at


def _line_end(text: np.ndarray, at: int) -> int:
    while text[at] != NEWLINE:
        at += 1
    return at


def _same(text: np.ndarray, start: int, end: int, other: int, other_end: int) -> bool:
    length = end - start
    same = other_end - other == length
    k = 0
    while same and k < length:
        same = text[start + k] == text[other + k]
        k += 1
    return same

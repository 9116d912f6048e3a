"""The reader of text that vote files and item files share."""

import csv
import gzip

import pytest

from duels.errors import InvalidInput
from duels.votes.text_files import cells_up_to, csv_rows, first_line, json_rows, read_text, suffix_of


def test_paths_bytes_and_gzip(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress("\ufeffcafé".encode()))
    assert read_text(path, "x") == read_text(str(path), "x") == read_text(path.read_bytes(), "x") == "café"
    assert read_text(path, "x", decompress_bytes=False) == "café"
    with pytest.raises(InvalidInput, match="x is not text in UTF-8"):
        read_text(path.read_bytes(), "x", decompress_bytes=False)


def test_what_cannot_be_read(tmp_path):
    for source in (tmp_path / "none", "a\x00b", gzip.compress(b"text")[:-4]):
        with pytest.raises(InvalidInput, match="x cannot be read: "):
            read_text(source, "x")
    with pytest.raises(InvalidInput, match="x is not text in UTF-8: invalid start byte at byte 1"):
        read_text(b"a\xff", "x")


def test_suffix_and_first_line():
    assert [suffix_of(name) for name in ("a.CSV", "a.csv.gz", "a", "b.d/a.tsv.GZ")] == [".csv", ".csv", "", ".tsv"]
    assert first_line("\n\n a,b\nc") == "a,b"


def test_csv_rows_know_where_they_start():
    assert list(csv_rows('a,b\n\n"x\ny",2\n3,4', ",")) == [(1, ["a", "b"]), (3, ["x\ny", "2"]), (5, ["3", "4"])]
    (_, row), (line, error) = csv_rows('a,b\n"x', ",")
    assert (row, line) == (["a", "b"], 2)
    assert "not a table from here on" in str(error)


def test_the_limit_of_cells_is_restored():
    before = csv.field_size_limit()
    with cells_up_to(before + 1):
        assert csv.field_size_limit() == before + 1
    assert csv.field_size_limit() == before


def test_json_rows():
    (first, one), (second, error) = json_rows('{"a": 1}\n\n{')
    assert (first, one, second) == (1, {"a": 1}, 3)
    assert str(error).startswith("not JSON: ")
    assert list(json_rows('{"a": 1, "a": 2}', list)) == [(1, [("a", 1), ("a", 2)])]

"""Collections: LETOR text against a parser of ten lines, every refusal, the cache, and facts of public data."""

import gzip
import io
import os
import random
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duels.errors import InvalidInput, UnknownName
from duels.files import cache_folder
from duels.rankers import cache, collection, letor
from duels.rankers.collection import Collection
from duels.rankers.collection import load as load_collection
from duels.rankers.collection import save as save_collection
from duels.rankers.letor import POWERS, scan

SMALL = """\
2 qid:WT04-1 1:0.5 2:0 3:1e-3 #docid = G00-1
0 qid:WT04-1 3:0.25 # docid = G00-2 inc = 1
0 qid:b 1:-7 #G00-3 the first word
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DUELS_CACHE", str(tmp_path / "cache"))


def file(folder, content, name="some.txt"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def same(one, other):
    assert one.queries == other.queries
    assert one.documents == other.documents
    for key in ("features", "grades", "offsets"):
        assert np.array_equal(getattr(one, key), getattr(other, key)), key
    return True


def refused(message):
    return pytest.raises(InvalidInput, match=re.escape(message))


def forbidden(*args, **kwargs):
    raise AssertionError("the files were read again")


def test_a_small_file(tmp_path):
    found = load_collection(file(tmp_path, SMALL))
    assert found.name == "some"
    assert found.queries == ("WT04-1", "b")
    assert found.documents == ("G00-1", "G00-2", "G00-3")
    assert found.features.tolist() == [[0.5, 0, 0.001], [0, 0, 0.25], [-7, 0, 0]]
    assert found.grades.tolist() == [2, 0, 0]
    assert found.offsets.tolist() == [0, 2, 3]
    assert found.feature_ids == (1, 2, 3)
    assert found.feature_names == ("f1", "f2", "f3")
    assert not any(array.flags.writeable for array in (found.features, found.grades, found.offsets))


def plain(text):
    """Ten lines of Python: rows of grade, query, features and docid."""
    rows = []
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if line.split() and not line.strip().startswith(b"#"):
            label, query = line.split()[:2]
            rest, _, comment = line[line.index(query) + len(query) :].partition(b"#")
            features = {int(word.split(b":")[0]): float(word.split(b":")[1]) for word in rest.split()}
            words = comment.replace(b"docid = ", b"").split()
            rows.append((int(float(label)), query[4:].decode(), features, words[0].decode() if words else ""))
    return rows


finite = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.one_of(
    finite.map(repr),
    finite.map(lambda x: f"{x:.6e}"),
    st.floats(0, 1).map(lambda x: f"{x:.6f}"),
    st.integers(-(10**20), 10**20).map(str),
    st.from_regex(r"\A[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,9})([eE][+-]?[0-9]{1,2})?\Z"),
)
blanks = st.sampled_from([" ", "  ", "\t", " \v\f"])
ids = st.text(st.characters(exclude_characters=" \t\n\r\v\f", exclude_categories=["Cs"]), min_size=1, max_size=6)


@st.composite
def documents(draw, query):
    features = draw(st.dictionaries(st.integers(1, 30), numbers, max_size=5))
    order = draw(st.sampled_from([sorted(features), list(features)]))
    words = [draw(st.sampled_from(["0", "1", "4", "2.0", "+1", "007"])), f"qid:{query}"]
    words += [f"{number}:{features[number]}" for number in order]
    text = draw(st.sampled_from(["", " "])) + draw(blanks).join(words)
    return text + draw(st.sampled_from(["", " ", " #", " # docid = G1-2", " #d7 and more", " # docid = x y = 1"]))


@st.composite
def letor_texts(draw):
    lines = [draw(documents(q)) for q in draw(st.lists(ids, min_size=1, max_size=4, unique=True)) for _ in range(2)]
    lines.append("1 qid:the-last 2:1")
    extra = draw(st.lists(st.sampled_from(["", "  ", "# a remark", "\t#"]), max_size=3))
    for line in extra:
        lines.insert(draw(st.integers(0, len(lines))), line)
    end = draw(st.sampled_from(["\n", "\r\n"]))
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return (mark + end.join(lines) + draw(st.sampled_from(["", end]))).encode()


@settings(deadline=None)
@given(letor_texts(), st.integers(1, 60))
@pytest.mark.deep
def test_any_text_is_read_as_by_ten_lines_of_python(tmp_path_factory, text, chunk):
    path = file(tmp_path_factory.mktemp("letor"), text)
    found = letor.read_files([path], lambda share: None, chunk)
    rows = plain(text)
    width = max(max(features, default=0) for _, _, features, _ in rows)
    expected = np.zeros((len(rows), width))
    for row, (_, _, features, _) in enumerate(rows):
        for number, value in features.items():
            expected[row, number - 1] = value
    assert found.features.tobytes() == expected.tobytes()  # bit by bit
    assert found.grades.tolist() == [grade for grade, _, _, _ in rows]
    sizes = np.diff(found.offsets).tolist()
    asked = [query for query, size in zip(found.queries, sizes) for _ in range(size)]
    assert asked == [query for _, query, _, _ in rows]
    assert list(found.documents or [""] * len(rows)) == [docid for _, _, _, docid in rows]


@settings(deadline=None)
@given(letor_texts())
def test_the_scanner_interpreted_and_compiled(text):
    text = text.removeprefix(b"\xef\xbb\xbf") + b"\n"
    page = letor.read_page(text)
    again = type(page)(*(np.zeros_like(array) for array in page))
    symbols, at = np.frombuffer(text, np.uint8), 0
    while (at := scan(symbols, at, again, POWERS)) < len(text):
        end = text.index(b"\n", at) + 1
        letor._enter(again, at, letor.read_line(text[at:end]))
        at = end
    letor._read_long(again, text)
    assert again.counts.tolist() == page.counts.tolist()
    _, rows, entries, _ = page.counts
    for key in ("grade", "line", "query", "fresh", "comment", "entries"):
        assert getattr(again, key)[:rows].tolist() == getattr(page, key)[:rows].tolist()
    assert again.value[:entries].tobytes() == page.value[:entries].tobytes()


@pytest.mark.parametrize(
    "number",
    [
        *("9007199254740992", "9007199254740993", "90071992547409925", "123456789012345678901234567890"),
        *("1e22", "1e23", "9007199254740991e22", "9007199254740991e-22", "9007199254740993e-22", "8.5e-23"),
        *("2.2250738585072011e-308", "5e-324", "2e-324", "1.7976931348623157e308", "-0.0", "0e999", "0." + "0" * 40),
        *("0" * 30 + "1.5", "1." + "0" * 40, "5.", ".5", "+3", "-.25E+2", "0.1", "0.3", "4.35", "179769.31348623157"),
    ],
)
def test_numbers_are_those_of_python(number):
    page = letor.read_page(f"0 qid:1 1:{number} 2:1\n".encode())
    assert page.value[0].hex() == float(number).hex()
    assert page.value[1] == 1


def test_random_numbers_are_those_of_python():
    draw = random.Random(0)
    words = [f"{draw.uniform(-1, 1) * 10 ** draw.randint(-9, 9):.{draw.randint(0, 19)}g}" for _ in range(50_000)]
    page = letor.read_page("".join(f"0 qid:1 1:{word}\n" for word in words).encode())
    assert page.value[: page.counts[2]].tobytes() == np.array([float(word) for word in words]).tobytes()
    assert 1000 < page.counts[3] < 25_000  # some take the long way, most do not


def test_several_files_and_their_order(tmp_path):
    a = file(tmp_path, "1 qid:1 1:1\n0 qid:2 1:2", "a.txt")
    b = file(tmp_path, "1 qid:2 3:5\n0 qid:3 1:3\n", "b.txt")
    found = load_collection([a, str(b)])
    assert found.name == tmp_path.name
    assert found.queries == ("1", "2", "3")  # a query may go on where the next file begins
    assert found.features.tolist() == [[1, 0, 0], [2, 0, 0], [0, 0, 5], [3, 0, 0]]
    assert found.documents is None
    with refused("no file was given"):
        load_collection([])


@pytest.mark.parametrize("names", [("train", "vali", "test"), ("trainingset", "validationset", "testset")])
def test_a_folds_directory(tmp_path, names):
    fold = tmp_path / "Fold1.v2"
    fold.mkdir()
    for k, name in enumerate(names):
        text = f"1 qid:{k} 1:{k}\n".encode()
        file(fold, text if k else gzip.compress(text), f"{name}.txt" + ("" if k else ".gz"))
    file(fold, "not to be read", "notes.txt")
    found = load_collection(fold)
    assert (found.name, found.queries) == ("Fold1.v2", ("0", "1", "2"))
    (fold / f"{names[1]}.txt").unlink()
    assert load_collection(fold, name="mine").queries == ("0", "2")
    with refused(f"{tmp_path} has the folds Fold1.v2: choose one, such as {fold}"):
        load_collection(tmp_path)


def test_gzip(tmp_path):
    packed = gzip.compress(SMALL[:60].encode()) + gzip.compress(SMALL[60:].encode())  # two members, as `cat` makes them
    plain = load_collection(file(tmp_path, SMALL))
    assert same(load_collection(file(tmp_path, packed, "a.txt.gz")), plain)
    assert same(load_collection(file(tmp_path, packed, "gzipped-all-the-same.txt"), cache=False), plain)
    assert same(load_collection(file(tmp_path, SMALL, "plain-all-the-same.gz"), cache=False), plain)
    with refused("cut.txt.gz is not a complete gzip file"):
        load_collection(file(tmp_path, packed[:-9], "cut.txt.gz"))
    damaged = bytearray(gzip.compress(os.urandom(3000)))
    damaged[1000] ^= 255
    with refused("damaged.gz is not a complete gzip file"):
        load_collection(file(tmp_path, bytes(damaged), "damaged.gz"))


def test_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(SMALL,), daemon=True)
    writer.start()
    assert load_collection(pipe, progress=False).document_count == 3
    writer.join(60)


def test_progress_grows_to_one(tmp_path):
    paths = [file(tmp_path, gzip.compress(f"1 qid:{k} 1:{k}\n".encode() * 9), f"{k}.gz") for k in range(3)]
    shares = []
    letor.read_files(paths, shares.append, 20)
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] == 1


def test_a_bar_where_asked_for(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # what rich takes for a terminal
    load_collection(file(tmp_path, SMALL), cache=False, progress=True)
    assert "reading some" in capsys.readouterr().err
    load_collection(file(tmp_path, SMALL), cache=False)
    assert capsys.readouterr().err == ""


FORM = "a line is 'grade qid:query 1:value 2:value … # comment'"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0 1:0.5", f"found '1:0.5', expected qid: and the query's id: {FORM}"),
        ("0", f"found the end of the line, expected qid: and the query's id: {FORM}"),
        ("0 qid: 1:0.5", f"found 'qid:', expected qid: and the query's id: {FORM}"),
        ("qid:1 0 1:0.5", "the label 'qid:1' is not a grade: expected a whole number from 0 (not relevant) to 1000"),
        ("1.5 qid:1 1:0.5", "the label '1.5' is not a grade"),
        ("-1 qid:1 1:0.5", "the label '-1' is not a grade"),
        ("1001 qid:1 1:0.5", "the label '1001' is not a grade"),
        ("99999999999999999999 qid:1 1:0.5", "the label '99999999999999999999' is not a grade"),
        ("0 qid:1 0.5", "'0.5' is not a feature: expected its number and value, such as 3:0.25"),
        ("0 qid:1 1 :0.5", "'1' is not a feature"),
        ("0 qid:1 0:0.5", "'0:0.5' has the feature number '0': expected 1 to 65535"),
        ("0 qid:1 -3:0.5", "'-3:0.5' has the feature number '-3'"),
        ("0 qid:1 1_0:0.5", "'1_0:0.5' has the feature number '1_0'"),
        ("0 qid:1 bm25:0.5", "'bm25:0.5' has the feature number 'bm25'"),
        ("0 qid:1 :0.5", "':0.5' has the feature number ''"),
        ("0 qid:1 65536:1", "'65536:1' has the feature number '65536'"),
        ("0 qid:1 123456789012:1", "'123456789012:1' has the feature number '123456789012'"),
        ("0 qid:1 1:0.5 1:0.5", "feature 1 appears twice, the second time as '1:0.5'"),
        ("0 qid:1 2:0.5 1:0 02:7", "feature 2 appears twice, the second time as '02:7'"),
        ("0 qid:1 1:", "'1:' has the value '': expected a finite number"),
        ("0 qid:1 1:0.5.5", "'1:0.5.5' has the value '0.5.5': expected a finite number"),
        ("0 qid:1 1:1e", "'1:1e' has the value '1e'"),
        ("0 qid:1 1:1_0", "'1:1_0' has the value '1_0'"),
        ("0 qid:1 1:0x10", "'1:0x10' has the value '0x10'"),
        ("0 qid:1 1:nan", "'1:nan' has the value 'nan': expected a finite number"),
        ("0 qid:1 1:-inf", "'1:-inf' has the value '-inf': expected a finite number"),
        ("0 qid:1 1:0 2:1e999 3:0", "'2:1e999' has the value '1e999': expected a finite number"),
        ("0 qid:1 1:0,5", "'1:0,5' has the value '0,5'"),
        ("0 qid:1 1:1 qid:1", "'qid:1' has the feature number 'qid'"),
        ("\0\1\2", "the label '\\x00\\x01\\x02' is not a grade"),
        ("x" * 99, "the label '" + "x" * 39 + "…' is not a grade"),
    ],
)
def test_malformed_lines(tmp_path, line, message):
    path = file(tmp_path, f"1 qid:1 1:1 2:2\n\n# a remark\n{line}\n1 qid:1 1:1\n")
    with refused(f"{path}, line 4: {message}"):
        load_collection(path)
    with refused(f"{path}, line 4: {message}"):
        letor.read_files([path], lambda share: None, 7)


def test_a_query_that_comes_back(tmp_path):
    path = file(tmp_path, "0 qid:é 1:1\n0 qid:2 1:1\n0 qid:é 1:1\n")
    message = f"{path}, line 3: query 'é' appears again after query '2'; it began in {path}, line 1. The documents of"
    for chunk in (5, 1 << 20):
        with refused(message):
            letor.read_files([path], lambda share: None, chunk)
    later = file(tmp_path, "\n0 qid:1 1:1\n0 qid:2 1:1\n", "later.txt")
    first = file(tmp_path, "0 qid:1 1:1\n0 qid:2 1:1\n", "first.txt")
    with refused(f"{later}, line 2: query '1' appears again after query '2'; it began in {first}, line 1"):
        load_collection([first, later])


def test_files_without_documents(tmp_path):
    with refused(f"{tmp_path / 'none.txt'} does not exist: expected a LETOR file or a fold's directory"):
        load_collection(tmp_path / "none.txt")
    with refused(f"{tmp_path} has no train.txt, vali.txt or test.txt (or .txt.gz): name the files instead"):
        load_collection(tmp_path)
    empty = file(tmp_path, "", "empty.txt")
    for paths in (empty, [file(tmp_path, SMALL), empty], file(tmp_path, gzip.compress(b""), "empty.gz")):
        with refused(f"is empty: {FORM}"):
            load_collection(paths)
    with refused(f"has 3 lines but no document: {FORM}"):
        load_collection(file(tmp_path, "# a\n\n# b"))
    with refused("some.txt: no line has a feature"):
        load_collection(file(tmp_path, "1 qid:1\n0 qid:1 # x\n"))


def test_unreadable_files(tmp_path, monkeypatch):
    path = file(tmp_path, SMALL)

    def denied(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with refused(f"{path} cannot be read: Permission denied"):
        load_collection(path)


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(letor, "LONGEST_LINE", 1 << 20)
    with refused("has a line of over 1 MB: expected lines of text"):
        letor.read_files([file(tmp_path, b"x" * (1 << 22))], lambda share: None, 1 << 16)


def test_the_cache_is_found_by_content(tmp_path, monkeypatch):
    path = file(tmp_path, SMALL)
    first = load_collection(path)
    (kept,) = (tmp_path / "cache" / "collections").iterdir()
    monkeypatch.setattr(collection, "read_files", forbidden)
    again = load_collection(file(tmp_path, SMALL, "elsewhere.txt"))
    assert again.name == "elsewhere"
    assert same(again, first)
    assert not again.features.flags.writeable
    assert load_collection(path, relevant_only=True).queries == ("WT04-1",)
    stat = path.stat()
    path.write_text(SMALL.replace("0.25", "0.26"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # same name, size and time: the content alone tells
    with pytest.raises(AssertionError, match="read again"):
        load_collection(path)
    monkeypatch.undo()
    monkeypatch.setenv("DUELS_CACHE", str(tmp_path / "cache"))
    assert load_collection(path).features[1, 2] == 0.26
    assert load_collection(path, cache=False).features[1, 2] == 0.26
    assert kept.exists()


def test_texts_survive_the_cache(tmp_path):
    path = file(tmp_path, "1 qid:naïve\u0085\u2028q 1:1 #docid = \u2029é\n0 qid:2 1:0\n")
    first, again = load_collection(path), load_collection(path)
    assert first.queries == again.queries == ("naïve\u0085\u2028q", "2")
    assert first.documents == again.documents == ("\u2029é", "")
    path.write_text("1 qid:1 1:1")
    assert load_collection(path).documents is load_collection(path).documents is None


@pytest.mark.parametrize("damage", ["emptied", "cut", "garbage", "flipped", "other arrays", "folder"])
def test_a_damaged_cache_is_made_again(tmp_path, damage):
    path = file(tmp_path, SMALL)
    first = load_collection(path)
    (kept,) = (tmp_path / "cache" / "collections").iterdir()
    content = bytearray(kept.read_bytes())
    content[content.index(np.float64(0.25).tobytes())] ^= 1
    other = io.BytesIO()
    np.savez(other, features=np.zeros(3))
    wrong = {
        "emptied": b"",
        "cut": content[:-100],
        "garbage": b"garbage" * 99,
        "flipped": content,
        "other arrays": other.getvalue(),
    }
    kept.unlink()
    if damage == "folder":
        kept.mkdir()
    else:
        kept.write_bytes(wrong[damage])
    assert same(load_collection(path), first)
    if damage != "folder":
        assert same(cache.read(kept, "x", Collection), first)


def test_nowhere_to_keep_it(tmp_path, monkeypatch):
    path = file(tmp_path, SMALL)
    monkeypatch.setenv("DUELS_CACHE", str(path))  # a file
    assert load_collection(path).document_count == 3

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("DUELS_CACHE", str(tmp_path / "full"))
    monkeypatch.setattr(np, "savez", full)
    assert load_collection(path).document_count == 3
    assert list((tmp_path / "full" / "collections").iterdir()) == []


def test_where_the_cache_is(tmp_path, monkeypatch):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.setenv("DUELS_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "duels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "duels"


def test_a_file_that_changes_while_it_is_read_is_not_kept(tmp_path, monkeypatch):
    path = file(tmp_path, SMALL)

    def changing(files, show):
        found = letor.read_files(files, show)
        path.write_text(SMALL + "0 qid:later 1:1\n")
        return found

    monkeypatch.setattr(collection, "read_files", changing)
    assert load_collection(path).document_count == 3
    assert load_collection(path).document_count == 4


def made(features, grades=None, offsets=None, queries=None, **more):
    features = np.array(features, float)
    count = len(features)
    offsets = [0, count] if offsets is None else offsets
    queries = [str(q) for q in range(len(offsets) - 1)] if queries is None else queries
    return Collection("made", features, np.array([0] * count if grades is None else grades), offsets, queries, **more)


@settings(deadline=None)
@given(st.lists(st.tuples(finite, finite, st.integers(0, 4), ids | st.just("")), min_size=1, max_size=6), ids)
def test_what_is_written_is_read_back_exactly(tmp_path_factory, rows, query):
    path = tmp_path_factory.mktemp("letor") / "some.txt"
    one = made(
        [row[:2] for row in rows],
        [row[2] for row in rows],
        offsets=[0, 1, len(rows)] if len(rows) > 1 else None,
        queries=[query, query + "'"][: min(len(rows), 2)],
        documents=[row[3] for row in rows],
    )
    save_collection(one, path)
    again = load_collection(path, cache=False)
    assert again.features.tobytes() == one.features.tobytes()
    assert (again.queries, again.grades.tolist()) == (one.queries, one.grades.tolist())
    assert (again.documents or ("",) * len(rows)) == one.documents


def test_what_is_written(tmp_path):
    one = made([[0.1, 1e-7], [1 / 3, 2]], [1, 0], documents=["a", ""], feature_ids=[2, 5])
    save_collection(one, tmp_path / "exact.txt")
    assert (
        tmp_path / "exact.txt"
    ).read_text() == "1 qid:0 2:0.1 5:1e-07 #docid = a\n0 qid:0 2:0.3333333333333333 5:2.0\n"
    save_collection(one, tmp_path / "rounded.txt.gz", decimals=6)
    text = gzip.decompress((tmp_path / "rounded.txt.gz").read_bytes()).decode()
    assert text == "1 qid:0 2:0.100000 5:0.000000 #docid = a\n0 qid:0 2:0.333333 5:2.000000\n"
    assert sorted(os.listdir(tmp_path)) == ["exact.txt", "rounded.txt.gz"]


def test_what_cannot_be_written(tmp_path):
    with refused("the query id 'a b' cannot be written: expected text without spaces"):
        save_collection(made([[1]], queries=["a b"]), tmp_path / "x.txt")
    with refused("the document id 'a\\n' cannot be written"):
        save_collection(made([[1]], documents=["a\n"]), tmp_path / "x.txt")
    with refused("cannot be written: No such file or directory"):
        save_collection(made([[1]]), tmp_path / "nowhere" / "x.txt")
    with refused("decimals is -1"):
        save_collection(made([[1]]), tmp_path / "x.txt", decimals=-1)
    assert os.listdir(tmp_path) == []


def test_counts_and_parts():
    # Column 1: 1, 1, 2 | 3 | 3, 3: four of six documents share their value within the query. Column 2: all differ.
    one = made(
        [[1, 1], [1, 2], [2, 3], [3, 4], [3, 5], [3, 6]],
        grades=[0, 2, 0, 0, 1, 1],
        offsets=[0, 3, 4, 6],
        queries=["a", "b", "c"],
        documents=list("uvwxyz"),
    )
    assert (one.query_count, one.document_count, one.feature_count, one.grade_count) == (3, 6, 2, 3)
    assert one.sizes.tolist() == [3, 1, 2]
    assert one.has_relevant.tolist() == [True, False, True]
    assert one.queries_without_relevant == 1
    assert one.ties.tolist() == [4 / 6, 0]
    assert one.rows("c") == one.rows(2) == slice(4, 6)
    kept = one.keep_relevant()
    assert (kept.queries, kept.documents, kept.queries_without_relevant) == (("a", "c"), tuple("uvwyz"), 0)
    assert kept.offsets.tolist() == [0, 3, 5]
    assert kept.features[:, 1].tolist() == [1, 2, 3, 5, 6]
    assert kept.keep_relevant() is kept
    assert one.subset(["c", 0]).grades.tolist() == [1, 1, 0, 2, 0]
    assert one.describe().splitlines() == [
        "queries    3, 1 of them without a relevant document",
        "documents  6",
        "a query    1 to 3 documents, median 2",
        "grades     3 of grade 0, 2 of grade 1, 1 of grade 2",
        "features   2, 0 of them constant within every query",
        "ties       33.3% of the values of the median feature, at most 66.7% (f1)",
    ]
    assert repr(one) == "Collection('made': 3 queries, 6 documents, 2 features)"
    with pytest.raises(UnknownName, match="unknown query 'd'"):
        one.rows("d")
    with refused("query 3 does not exist: expected an id or a number from 0 to 2"):
        one.rows(3)
    with refused("no query was chosen"):
        one.subset([])
    with refused("no query of made has a relevant document"):
        made([[1]]).keep_relevant()


def test_the_digest_sees_numbers_only():
    one = made([[1, 2], [3, 4]], [0, 1])
    assert made([[1, 2], [3, 4]], [0, 1], queries=["x"], documents=["a", "b"]).digest == one.digest
    others = [
        made([[1, 2], [3, 5]], [0, 1]),
        made([[1, 2], [3, 4]], [1, 1]),
        made([[1, 2], [3, 4]], [0, 1], [0, 1, 2]),
        made([[1], [2], [3], [4]], [0, 1, 0, 1]),
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": np.zeros(3)}, "features have shape (3,): expected (documents, features)"),
        ({"features": np.zeros((0, 2))}, "features have shape (0, 2)"),
        ({"features": [[0, 1], [np.nan, 2]]}, "features[1, 0] = nan: expected a finite number"),
        ({"features": [[0, 1], ["x", 2]]}, "a collection needs arrays of numbers"),
        ({"grades": np.array([0])}, "grades are int64 of shape (1,): expected a whole number for each of 2 documents"),
        ({"grades": np.array([0.0, 1.0])}, "grades are float64 of shape (2,)"),
        ({"grades": np.array([0, -1])}, "grades[1] = -1: expected a whole number from 0 to 1000"),
        ({"offsets": [0, 0, 2]}, "offsets [0 0 2] do not split 2 documents into queries"),
        ({"offsets": [0, 1]}, "offsets [0 1] do not split 2 documents"),
        ({"offsets": [1, 2]}, "offsets [1 2] do not split 2 documents"),
        ({"queries": ["a", "b"]}, "2 query ids for 1: expected one per query"),
        ({"offsets": [0, 1, 2], "queries": ["a", "a"]}, "the query id 'a' appears twice: each query needs its own"),
        ({"documents": ["a"]}, "1 document ids for 2 documents: expected one each"),
        ({"feature_ids": [1, 1]}, "the feature id 1 appears twice"),
        ({"feature_ids": [0, 1]}, "feature id 0: features are numbered from 1"),
        ({"feature_names": ["a"]}, "1 feature names for 2: expected one per column of features"),
    ],
)
def test_collections_that_do_not_fit_together(arguments, message):
    fits = {"features": np.zeros((2, 2)), "grades": np.array([0, 1]), "offsets": [0, 2], "queries": ["a"]}
    with refused(message):
        Collection("x", **{**fits, **arguments})


def test_np2004(shared_data):
    folder = shared_data("letor/NP2004-Fold1")
    both, test, vali = (load_collection(folder / name) for name in ("", "test.txt.gz", "vali.txt.gz"))
    assert (test.query_count, test.document_count, test.feature_count) == (15, 14_181, 64)
    assert (vali.query_count, vali.document_count, vali.feature_count) == (15, 15_000, 64)
    assert (vali.queries_without_relevant, test.queries_without_relevant) == (1, 0)
    assert (both.features.min(), both.features.max(), both.grade_count) == (0, 1, 2)
    assert both.queries == vali.queries + test.queries
    assert test.queries[0] == "WT04-182"
    assert test.documents[0] == "G13-86-1372899"
    with gzip.open(folder / "test.txt.gz") as lines:
        for row, line in enumerate(lines):
            if row % 50 == 0:
                words = line.partition(b"#")[0].split()
                assert test.features[row].tolist() == [float(word.partition(b":")[2]) for word in words[2:]]
                assert test.grades[row] == int(words[0])


def test_mq2008(shared_data):
    found = load_collection(shared_data("letor/MQ2008-Fold1"))
    assert (found.query_count, found.document_count, found.feature_count) == (784, 15_211, 46)
    assert found.queries == tuple(str(q) for q in range(1, 785))
    assert np.unique(found.grades).tolist() == [0, 1, 2]
    assert found.keep_relevant().query_count == 564
    assert found.queries_without_relevant == 784 - 564

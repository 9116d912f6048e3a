"""Items: every format, errors with their lines, all or none, both databases, and a fair choice."""

import base64
import csv
import gzip
import io
import json
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duels.errors import Conflict, DuelsError, InvalidInput, NothingToAsk, StorageError, UnknownName
from duels.server.results_tab import glance
from duels.storage.statements import fetch_rows
from duels.study import items
from duels.study.create import create_study, delete_study
from duels.study.items import (
    Item,
    Output,
    add_items,
    clear_items,
    count_items,
    item_of,
    list_items,
    read_items,
    replace_item,
)
from duels.votes import items as item_files

TWO = Item("2 + 2?", {"gpt": Output("text", "4"), "llama": Output("text", "four")})
PNG = "data:image/png;base64,iVBORw0KGgo="


@pytest.fixture(params=["sqlite", "postgresql"])
def study(request, tmp_path):
    url = f"sqlite:///{tmp_path}/duels.db" if request.param == "sqlite" else request.getfixturevalue("postgres")
    return create_study(["gpt", "llama", "qwen"], "answers", url)


def line(prompt="2 + 2?", gpt="4", llama="four", **more):
    return json.dumps({"prompt": prompt, "outputs": {"gpt": gpt, "llama": llama}} | more)


def plain(prompt, **texts):
    return Item(prompt, {arm: Output("text", text) for arm, text in texts.items()})


WRITTEN = {
    "jsonl": line(),
    "ndjson": '\n{"query": "2 + 2?", "outputs": {"gpt": "4", "llama": "four", "qwen": null}, "id": 7}\r\n\n',
    "json": '[{"prompt": "2 + 2?",\n "outputs": {"gpt": {"content": "4"}, "llama": {"content": "four", "kind": ""}}}]',
    "csv": "prompt,gpt,llama,qwen\n2 + 2?,4,four,\n",
    "tsv": "Query\t gpt \tllama\r\n2 + 2?\t4\tfour\r\n",
}
LONG = "arm,prompt,output\ngpt,2 + 2?,4\nllama,2 + 2?,four\n"


@pytest.mark.parametrize("format", WRITTEN)
def test_every_format(format, tmp_path):
    content = WRITTEN[format].encode()
    path = tmp_path / f"items.{format}"
    path.write_bytes(content)
    packed = tmp_path / f"items.{format}.gz"
    packed.write_bytes(gzip.compress(content))
    marked = tmp_path / f"marked.{format}"
    marked.write_bytes(b"\xef\xbb\xbf" + content)
    nameless = tmp_path / "items"
    nameless.write_bytes(content)
    for source in (path, str(path), packed, marked, nameless, content, b"\xef\xbb\xbf" + content):
        assert read_items(source) == [TWO]
    assert read_items(nameless, format=format) == [TWO]


def test_the_long_form_gathers_the_rows_of_a_prompt():
    text = "prompt,arm,output,kind\na,x,1,\nb,x,2,markdown\na,y,3,code\nb,z,,text\n"
    assert read_items(text.encode()) == [
        Item("a", {"x": Output("text", "1"), "y": Output("code", "3")}),
        Item("b", {"x": Output("markdown", "2"), "z": Output("text", "")}),
    ]
    assert read_items(LONG.encode()) == [TWO]


def test_kinds_of_the_line_and_of_the_output():
    one = line(gpt={"kind": "code", "content": "4"}, llama="*four*", kind="markdown")
    (item,) = read_items(one.encode())
    assert item.outputs == {"gpt": Output("code", "4"), "llama": Output("markdown", "*four*")}
    wide = "kind,prompt,gpt,llama\nhtml,a,<b>,<i>\n,a,<b>,<i>\n"
    assert [item.outputs["gpt"].kind for item in read_items(wide.encode())] == ["html", "text"]


def test_lists_of_dicts_and_items():
    assert read_items([TWO, json.loads(line()), {"query": TWO.prompt, "outputs": TWO.outputs}]) == [TWO] * 3


def test_text_is_kept_as_it_is():
    odd = ' <script>"x"</script>,\n\r\n\ttab 💥\u2028 '
    assert read_items(line(odd, odd, "").encode())[0] == plain(odd, gpt=odd, llama="")


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1).filter(
    lambda text: text == text.strip() and text.lower() not in ("prompt", "query", "kind", "arm", "output")
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00")).filter(str.strip)
ITEMS = st.lists(NAMES, min_size=2, max_size=4, unique=True).flatmap(
    lambda arms: st.lists(
        st.builds(
            lambda prompt, texts: plain(prompt, **dict(zip(arms, texts))), TEXTS, st.tuples(*[TEXTS] * len(arms))
        ),
        min_size=1,
        max_size=4,
        unique_by=lambda item: item.prompt,
    )
)


@given(ITEMS)
@settings(max_examples=60, deadline=None)
def test_what_others_write_is_read_back(found):
    arms = list(found[0].outputs)
    texts = [[item.outputs[arm].content for arm in arms] for item in found]
    wide = [["prompt", *arms], *([item.prompt, *row] for item, row in zip(found, texts))]
    long = [[item.prompt, arm, text] for item, row in zip(found, texts) for arm, text in zip(arms, row)]
    for rows, delimiter, format in (
        (wide, ",", "csv"),
        (wide, "\t", "tsv"),
        ([["prompt", "arm", "output"], *long], ",", "csv"),
    ):
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(rows)
        assert read_items(file.getvalue().encode(), format=format) == found
    objects = [{"prompt": item.prompt, "outputs": dict(zip(arms, row))} for item, row in zip(found, texts)]
    assert read_items("\n".join(map(json.dumps, objects)).encode()) == found
    assert read_items(json.dumps(objects, indent=1).encode()) == found


FAULTS = [
    (line() + "\n{nonsense\n", "line 2: not JSON"),
    (line() + "\n\n[1, 2]", r"line 3: found \[1, 2\], expected an object"),
    ('{"prompt": "a", "query": "b", "outputs": {}}', "line 1: found prompt, query, outputs, expected prompt"),
    ('{"prompt": "a", "output": {}}', "line 1: found prompt, output, expected prompt"),
    ('{"prompt": "a", "outputs": {"x": "1", "x": "2"}}', "line 1: not JSON: 'x' appears twice"),
    ('{"prompt": "a", "outputs": {"x": "1", "y": null}}', "line 1: 1 output, expected those of at least two"),
    ('{"prompt": "a", "outputs": ["x"]}', r"line 1: outputs is \['x'\]"),
    (line(prompt=7), "line 1: prompt is 7, expected text"),
    (line(prompt="  "), "line 1: prompt is '  ', expected text"),
    (line(gpt=7), "line 1: the output of 'gpt' is 7, expected text"),
    (line(gpt={"kind": "code"}), "line 1: the output of 'gpt' is None, expected text"),
    (line(kind="latex"), "line 1: the output of 'gpt' is of kind 'latex', expected one of text, markdown"),
    (line(kind=["code"]), "line 1: the output of 'gpt' is of kind"),
    (line(gpt="a\x00b"), "line 1: the output of 'gpt' cannot be shown: its text has a NUL"),
    (line(prompt="a\x00b"), "line 1: prompt has a NUL"),
    (line(gpt="\ud800"), "line 1: the output of 'gpt' cannot be shown: its text contains an unpaired surrogate"),
    ('{"prompt": "a", "outputs": {"": "1", "y": "2"}}', "line 1: an arm is called '', expected its name"),
    ('[{"prompt": "a"}]', "item 1: found prompt, expected"),
    ("[" * 100_000, "is not JSON"),
    ("[{]", "is not JSON"),
    ('prompt,x,y\n"a\nb",1,2\nc,3\n', "line 4: 2 fields, expected 3"),
    ("prompt,x,y\na,1,\n", "line 2: 1 output, expected"),
    ('prompt,x,y\na,1,2\nb,"3,4\n', "line 3: not a table from here on"),
    ("prompt,arm,output\na,x,1\na,y,2\na,x,3\n", "line 4: arm 'x' has an output for the prompt of line 2 already"),
    ("prompt,arm,output\na,x,1\nb,x,2\nb,y,2\n", "line 2: 1 output, expected"),
    ("prompt,arm,output,version\na,x,1,2\n", "line 1: the columns are prompt, arm, output, version; .* no others"),
    ("prompt,x,x\na,1,2\n", "line 1: .*each column once"),
    ("prompt,x,kind,Kind\na,1,2,3\n", "line 1: .*kind and Kind may both be the kind"),
    ("question,x,y\na,1,2\n", r"line 1: the columns are question, x, y; expected one column prompt \(or query\)"),
    ("prompt,query,x,y\na,1,2,3\n", "line 1: .*expected one column prompt"),
    ("prompt,x\na,1\n", "line 1: .*a column for each of two arms"),
    ("prompt,x,\na,1,2\n", "line 1: .*a column for each of two arms"),
    ("prompt,x,y\n", "holds no items"),
    ("", "holds no items"),
    ("[]", "holds no items"),
]


@pytest.mark.parametrize(("text", "said"), FAULTS)
def test_faults_are_told_with_their_lines(text, said):
    with pytest.raises(InvalidInput, match=said):
        read_items(text.encode())


def test_all_faults_are_counted_and_the_first_listed_in_order():
    text = "prompt,x,y\n" + "a,1\n" * 3 + " ,1,2\n" * 4 + "a,1\n"
    with pytest.raises(InvalidInput, match="nothing was imported: 8 errors; the first 5:") as caught:
        read_items(text.encode())
    assert [said.split(":")[0] for said in str(caught.value).splitlines()[1:]] == [f"  line {n}" for n in range(2, 7)]


def test_sources_that_hold_nothing_to_read(tmp_path):
    for source in (7, None, {"prompt": "a"}):
        with pytest.raises(InvalidInput, match="expected a path, bytes, or a list"):
            read_items(source)
    with pytest.raises(InvalidInput, match=r"absent\.csv cannot be read: No such file"):
        read_items(tmp_path / "absent.csv")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_items("a\x00.csv")
    with pytest.raises(InvalidInput, match="not text in UTF-8: invalid start byte at byte 1"):
        read_items(b"a\xff")
    with pytest.raises(InvalidInput, match="not text in UTF-8"):  # what is sent stays as large as it was
        read_items(gzip.compress(line().encode()))
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"prompt,a,b")[:-3])
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_items(tmp_path / "cut.csv.gz")
    with pytest.raises(UnknownName, match="unknown format of items 'xml'"):
        read_items(b"", format="xml")


def test_limits(monkeypatch):
    mebi = 1 << 20
    read_items(line("p" * 100_000, "é" * (mebi // 2)).encode())
    for text, said in (
        (line("p" * 100_001), "prompt has 100,001 characters, expected at most 100,000"),
        (line(gpt="é" * (mebi // 2) + "x"), "'gpt' cannot be shown: it is larger than 1 MiB"),
    ):
        with pytest.raises(InvalidInput, match=said):
            read_items(text.encode())
    monkeypatch.setattr(item_files, "MOST_ITEMS", 3)
    assert len(read_items([TWO] * 3)) == 3
    with pytest.raises(InvalidInput, match="holds more than 3 items: split it"):
        read_items([TWO] * 4)


@pytest.mark.parametrize("over", [0, 1])
def test_images_up_to_four_mebibytes(over, tmp_path):
    image = bytes(4 * (1 << 20) + over)
    url = f"data:image/webp;base64,{base64.b64encode(image).decode()}"
    (tmp_path / "large.webp").write_bytes(image)
    table = f'prompt,x,y,kind\na,"{url}","{PNG}",image\n'  # a cell that Python's reader would refuse by itself
    files = tmp_path / "items.csv"
    files.write_text(f'prompt,x,y,kind\na,large.webp,"{PNG}",image\n')
    before = csv.field_size_limit()
    for source in (table.encode(), files):
        if over:
            with pytest.raises(InvalidInput, match=r"line 2: the output of 'x' cannot be shown: .*larger than 4 MiB"):
                read_items(source)
        else:
            assert read_items(source)[0].outputs["x"] == Output("image", url)
    assert csv.field_size_limit() == before


def test_images_are_files_beside_the_items(tmp_path):
    folder = tmp_path / "items"
    (folder / "pictures").mkdir(parents=True)
    (folder / "pictures" / "a.PNG").write_bytes(base64.b64decode(PNG.partition(",")[2]))
    (folder / "b.svg").write_text("<svg/>")
    (folder / "note.txt").write_text("secret")
    (folder / "empty.png").write_bytes(b"")
    (tmp_path / "outside.png").write_bytes(b"secret")
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    (folder / "loop.png").symlink_to(folder / "loop.png")
    path = folder / "items.jsonl"
    path.write_text(line(gpt="pictures/a.PNG", llama="b.svg", kind="image"))
    gpt, llama = read_items(path)[0].outputs.values()
    assert gpt == Output("image", PNG)
    assert llama == Output("image", "data:image/svg+xml;base64," + base64.b64encode(b"<svg/>").decode())
    for name, said in {
        "../outside.png": "outside of the folder",
        str(tmp_path / "outside.png"): "outside of the folder",
        "link.png": "outside of the folder",
        "pictures/../../outside.png": "outside of the folder",
        "loop.png": "loop.png",
        "note.txt": "expected one of .png",
        "absent.png": "there is no such file",
        "pictures": "expected one of .png",
        "empty.png": "expected data:image/png",
        "x" * 5000 + ".png": "cannot be",
    }.items():
        path.write_text(line(gpt=name, llama=PNG, kind="image"))
        with pytest.raises(InvalidInput, match=f"line 1: the output of 'gpt' cannot be shown: .*{said}"):
            read_items(path)
    with pytest.raises(InvalidInput, match="expected data:image/png"):  # not from what was sent
        read_items(line(gpt="pictures/a.PNG", llama=PNG, kind="image").encode())
    with pytest.raises(InvalidInput, match="expected data:image/png"):
        read_items([Item("a", {"gpt": Output("image", str(folder / "b.svg")), "llama": Output("image", PNG)})])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("https://example.org/a.png", "pages load nothing from other hosts"),
        ("HTTP://example.org/a.png", "pages load nothing from other hosts"),
        ("//example.org/a.png", "pages load nothing from other hosts"),
        ("data:text/html;base64,AAAA", "expected data:image/png"),
        ("data:image/png;base64,", "expected data:image/png"),
        ("data:image/png;base64,AAA", "expected data:image/png"),
        ("data:image/png;base64,A===", "expected data:image/png"),
        ("data:image/png;base64,AA AA", "expected data:image/png"),
        ("data:image/png,AAAA", "expected data:image/png"),
        ("data:image/bmp;base64,AAAA", "expected data:image/png"),
        ("", "expected data:image/png"),
    ],
)
def test_images_that_are_none(content, said, tmp_path):
    text = line(gpt=content, llama=PNG, kind="image")
    with pytest.raises(InvalidInput, match=f"line 1: the output of 'gpt' cannot be shown: .*{said}"):
        read_items(text.encode())
    path = tmp_path / "items.jsonl"
    path.write_text(text)
    with pytest.raises(InvalidInput, match="line 1: the output of 'gpt' cannot be shown"):
        read_items(path)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["image", PNG]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["prompt", "query", "outputs", "kind", "content", "a", "b"]), inner)
    ),
    max_leaves=12,
)
TABLES = st.lists(
    st.lists(st.sampled_from(["prompt", "kind", "arm", "output", "a", "b", "", '"', "image", PNG, "\x00"]), max_size=4)
).map(lambda rows: "\n".join(map(",".join, rows)).encode())
BYTES = st.binary(max_size=60) | TABLES | st.lists(JSONS).map(lambda rows: "\n".join(map(json.dumps, rows)).encode())


@given(BYTES, st.sampled_from([None, *item_files.FORMATS]))
@settings(max_examples=3 * settings.default.max_examples, deadline=None)
def test_whatever_is_sent_is_read_or_refused(content, format):
    try:
        found = read_items(content, format=format)
    except DuelsError:
        return
    assert found
    for item in found:
        assert item.prompt.strip()
        assert len(item.outputs) >= 2
        assert all(kind in items.KINDS for kind, _ in item.outputs.values())
        assert "\x00" not in repr(item)
    assert read_items(found) == found


def test_items_are_kept_in_order_and_go_on_from_the_last(study):
    assert (count_items(study), list_items(study)) == (0, [])
    three = [TWO, plain("b", gpt="1", qwen="'%s?"), plain("c", gpt="", llama="2", qwen="💥")]
    assert add_items(study, three) == (3, 0)
    assert add_items(study, line("d").encode()) == (1, 0)
    every = [*three, plain("d", gpt="4", llama="four")]
    assert list_items(study) == list(enumerate(every, 1))
    assert list_items(study, after=1, limit=2) == list(enumerate(every, 1))[1:3]
    assert list_items(study, after=4) == []
    assert count_items(study) == 4
    assert item_of(study, 3) == every[2]
    assert item_of(study, 3, ["qwen", "llama"]) == plain("c", llama="2", qwen="💥")
    assert item_of(study, 3, []) == plain("c")
    for number in (5, 0, "x"):
        with pytest.raises(InvalidInput, match=r"no item 5|number is"):
            item_of(study, number)
    for after, limit in ((-1, 1), (0, 0), (0, 1_001)):
        with pytest.raises(InvalidInput, match="expected"):
            list_items(study, after, limit)


def test_all_or_none(study):
    add_items(study, [TWO])
    with pytest.raises(InvalidInput, match="does not have: mistral; add them with add_arm first"):
        add_items(study, [TWO, plain("b", gpt="1", mistral="2")])
    with pytest.raises(InvalidInput, match="item 2: prompt is ''"):
        add_items(study, [TWO, plain("", gpt="1", llama="2")])
    assert list_items(study) == [(1, TWO)]
    study.add_arm("mistral")
    study.retire_arm("llama")  # its outputs are still known by name
    assert add_items(study, [TWO, plain("b", gpt="1", mistral="2")]) == (1, 0)


def test_a_prompt_that_is_there_gets_the_outputs_that_it_lacks(study):
    twice = plain("twice", gpt="1", llama="2")
    add_items(study, [TWO, Item("Tea?\nOr not?", plain("", gpt="y", llama="n").outputs, ("tea",)), twice, twice])
    study.ask(4, allow_self=False)
    full = b"prompt,gpt,llama,qwen,tags\n2 + 2?,4,four,IV,sums\n" + b'"Tea?\r\nOr not? ",y,n,both,tea; hot\n'
    assert add_items(study, full) == (0, 2)
    assert add_items(study, full) == (0, 0)
    assert study.verdict().strength == "independent answers"  # the items stay as they were
    assert item_of(study, 1) == Item("2 + 2?", TWO.outputs | {"qwen": Output("text", "IV")}, ("sums",))
    assert item_of(study, 2).outputs["qwen"] == Output("text", "both")
    assert item_of(study, 2).tags == ("tea", "hot")
    assert add_items(study, b"prompt,qwen\ntwice,first\ntwice,second\n") == (0, 2)
    assert [item_of(study, number).outputs["qwen"].content for number in (3, 4)] == ["first", "second"]
    assert any("qwen" in (duel.left, duel.right) for duel in study.ask(50, allow_self=False))
    with pytest.raises(Conflict, match=r"item 1 of study 'answers', '2 [+] 2[?]', has another output of arm 'qwen'"):
        add_items(study, b"prompt,qwen\ntwice,first\n2 + 2?,4\n")
    with pytest.raises(InvalidInput, match="no item with the prompt 'new', so it needs outputs of at least two arms"):
        add_items(study, b"prompt,qwen\nnew,1\n")
    assert add_items(study, b"prompt,gpt,llama,qwen\nTwice,1,2,3\ntwice,1,2,first\n") == (1, 0)
    assert study.verdict().strength == "comparisons made"  # items were added
    assert count_items(study) == 5
    study.check()


def test_outputs_of_one_arm_are_no_items(study):
    for source in (b"prompt,qwen\na,1\n", b"prompt,arm,output\na,qwen,1\n", [plain("a", qwen="1")]):
        assert read_items(source, fewest=1) == [plain("a", qwen="1")]
        with pytest.raises(InvalidInput, match="two arms"):
            read_items(source)
        with pytest.raises(InvalidInput, match="no item with the prompt 'a'"):
            add_items(study, source)
    with pytest.raises(InvalidInput, match="expected a column for each of one arm or more"):
        add_items(study, b"prompt,tags\na,b\n")
    assert count_items(study) == 0


@pytest.mark.parametrize("about", ["these-items", "new-items"])
@pytest.mark.parametrize("before", [0, 10])
def test_an_arm_that_is_added_stops_no_questions(about, before, tmp_path):
    study = create_study(["gpt", "llama"], "answers", f"sqlite:///{tmp_path}/duels.db", about=about)
    add_items(study, [plain(f"p{number}", gpt="1", llama="2") for number in range(30)])
    for _ in range(before):
        study.tell(study.ask(allow_self=False), "gpt")
    study.add_arm("qwen")
    for _ in range(10):
        duel = study.ask(allow_self=False)
        assert {duel.left, duel.right} == {"gpt", "llama"}
        study.tell(duel, "gpt")
    words = glance(study)["next"]["words"]
    assert words.startswith("qwen waits for its outputs: voters are asked about it when all items have its output.")
    assert add_items(study, [plain(f"p{number}", qwen="3") for number in range(30)]) == (0, 30)
    assert any("qwen" in (duel.left, duel.right) for duel in study.ask(20, allow_self=False))
    assert "waits" not in glance(study)["next"]["words"]
    assert study.verdict().strength == "independent answers"
    study.check()


def test_a_crash_between_prompts_and_outputs_leaves_nothing(study, monkeypatch):
    execute_many = items.execute_many

    def fails(connection, text, rows):
        if "INTO outputs" in text:
            raise RuntimeError("power cut")
        execute_many(connection, text, rows)

    monkeypatch.setattr(items, "execute_many", fails)
    with pytest.raises(RuntimeError, match="power cut"):
        add_items(study, [TWO])
    monkeypatch.undo()
    assert count_items(study) == 0
    assert add_items(study, [TWO]) == (1, 0)


def test_many_add_at_once(study):
    batches = [[TWO._replace(prompt=f"{one} {k}") for k in range(5)] for one in range(8)]
    threads = [threading.Thread(target=add_items, args=(study, batch)) for batch in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [number for number, _ in list_items(study)] == [*range(1, 41)]
    assert sorted(item for _, item in list_items(study)) == sorted(item for batch in batches for item in batch)


def test_studies_have_their_own_items(study):
    other = create_study(["gpt", "llama"], "other", study._log.storage.url)
    add_items(study, [TWO] * 2)
    add_items(other, [TWO])
    assert clear_items(study) == 2
    assert (count_items(study), count_items(other)) == (0, 1)
    assert clear_items(study) == 0
    delete_study("other", study._log.storage.url)
    with study._log.storage.lock:
        assert fetch_rows(study._log.storage.connection(), "SELECT count(*) FROM outputs", ()) == [(0,)]
    with pytest.raises(StorageError, match="deleted"):
        add_items(other, [TWO])


def ask(study, voter=None):
    """The item of the next question."""
    duel = study.ask(voter=voter, allow_self=False)
    return None if duel.item is None else duel.item.number


def test_numbers_that_were_shown_are_not_given_again(study):
    add_items(study, [plain("a", gpt="1", llama="2", qwen="3")] * 3)
    shown = {ask(study) for _ in range(20)}
    assert shown == {1, 2, 3}
    clear_items(study)
    assert ask(study) is None
    add_items(study, [TWO])
    assert list_items(study) == [(4, TWO)]


def test_a_voter_is_asked_about_each_pair_and_item_once(study):
    add_items(study, [plain(f"item {n}", gpt="1", llama="2", qwen="3") for n in range(5)])
    for voter in ("ann", "bob"):
        asked = [study.ask(voter=voter, allow_self=False) for _ in range(15)]
        assert len({(frozenset((duel.left, duel.right)), duel.item.number) for duel in asked}) == 15
    with pytest.raises(NothingToAsk, match="'ann' was asked every pair about every item"):
        study.ask(voter="ann")
    assert study.ask(voter="carl").item is not None
    study.check()


def test_arms_are_asked_about_once_they_have_all_outputs(study):
    add_items(study, [plain("a", gpt="1", llama="2"), plain("b", gpt="1", llama="2", qwen="3")])
    assert all({duel.left, duel.right} == {"gpt", "llama"} for duel in study.ask(20, allow_self=False))
    replace_item(study, 1, plain("a", gpt="1", llama="2", qwen="3"))
    assert any("qwen" in (duel.left, duel.right) for duel in study.ask(50, allow_self=False))
    assert [entry.note for entry in study.events() if entry.kind == "items"] == [
        {"items": [[1, 2]], "ready": [0, 1, 2]}
    ]
    assert study.verdict().strength == "independent answers"
    study.check()


def test_items_without_outputs_are_refused_with_what_to_do(study):
    add_items(study, [plain("a", gpt="1", qwen="3"), plain("b", gpt="1", llama="2")])
    with pytest.raises(
        Conflict, match=r"item 1 of study 'answers' has no output of arm 'llama': .* add its outputs \(1 "
    ):
        study.ask()

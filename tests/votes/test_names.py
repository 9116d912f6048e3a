"""What may be called what: names that look the same are the same, and what was written before still works."""

import unicodedata

import pytest

from duels.errors import Conflict, InvalidInput
from duels.server.keys import make_key
from duels.storage.storage import Storage
from duels.study.create import create_study, delete_study, list_studies, load_study
from duels.study.items import add_items, list_items
from duels.votes.names import arm_names, compose, label, place_of, study_name, voter_name

COMPOSED, TAKEN_APART = "café", "cafe\u0301"
DOORS = {
    "arm": lambda name: arm_names(["other", name])[1],
    "study_name": study_name,
    "voter": voter_name,
    "name": label,
}


@pytest.fixture
def storage():
    return Storage("sqlite://")


@pytest.mark.parametrize("what", DOORS)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a\tb", "whose character 2 is U+0009 (a tab): leave it out"),
        ("a\nb", "whose character 2 is U+000A (a line break)"),
        ("a\x7f", "whose character 2 is U+007F (control character)"),
        ("a\x85", "whose character 2 is U+0085 (control character)"),
        ("pro\u200bmpt", "whose character 4 is U+200B (zero width space)"),
        ("a\u200cb", "U+200C (zero width non-joiner)"),
        ("👩\u200d🔬", "whose character 2 is U+200D (zero width joiner)"),
        ("a\u200e", "U+200E (left-to-right mark)"),
        ("\u202eabc", "whose character 1 is U+202E (right-to-left override)"),
        ("a\u2066b", "U+2066 (left-to-right isolate)"),
        ("a\u2028b", "U+2028 (line separator)"),
        ("\ufeffa", "U+FEFF (zero width no-break space)"),
        ("a\u00adb", "U+00AD (soft hyphen)"),
        ("a\u3164", "U+3164 (hangul filler)"),
        ("a\ufe0f", "U+FE0F (variation selector-16)"),
        ("\ufe0fa", "whose character 1 is U+FE0F"),
        ("a\U000e0041", "U+E0041 (tag latin capital letter a)"),
    ],
)
def test_what_cannot_be_seen_is_refused_by_name_and_place(what, name, said):
    with pytest.raises(InvalidInput) as error:
        DOORS[what](name)
    assert str(error.value).startswith(f"{what} is {name!r}, whose character ")
    assert said in str(error.value)


@pytest.mark.parametrize("what", DOORS)
@pytest.mark.parametrize("name", ["GPT 4", "-O2", "größer", "模型", "नमूना", "🦊", "❤️ 1️⃣ ‼️", "é à ñ", "a b"])
def test_what_can_be_seen_is_taken(what, name):
    assert DOORS[what](name) == unicodedata.normalize("NFC", name)


def test_names_are_kept_in_composed_form():
    for door in DOORS.values():
        assert door(TAKEN_APART) == COMPOSED
    with pytest.raises(InvalidInput, match="two arms are called 'café': names must be unique"):
        arm_names([COMPOSED, TAKEN_APART])


def test_a_name_is_as_long_as_it_is_kept():
    assert len(study_name("e\u0301" * 200)) == 200
    with pytest.raises(InvalidInput, match="expected up to 200 characters"):
        study_name("e\u0301" * 201)


def test_places():
    assert place_of(TAKEN_APART, [COMPOSED, TAKEN_APART]) == 1  # the very name goes first
    assert place_of(COMPOSED, ["x", TAKEN_APART]) == 1
    assert place_of(TAKEN_APART, ["x", COMPOSED]) == 1
    assert place_of("y", ["x", COMPOSED]) is None
    assert place_of(None, ["x"]) is None
    assert compose("x") == "x"


def test_a_study_and_its_arms_are_found_in_either_form(storage):
    study = create_study([TAKEN_APART, "tea"], TAKEN_APART, storage)
    assert (study.name, study.arms) == (COMPOSED, [COMPOSED, "tea"])
    for name in (COMPOSED, TAKEN_APART):
        assert load_study(name, storage).name == COMPOSED
        with pytest.raises(Conflict, match="there is a study 'café' already"):
            create_study(["x", "y"], name, storage)
        with pytest.raises(Conflict, match="arm 'café' exists already"):
            study.add_arm(name)
        assert create_study([name, "tea"], name, storage, load_if_exists=True).name == COMPOSED
        duel = study.ask(allow_self=False)
        study.tell(duel, name, voter=name)
        assert study.import_votes([(name, "tea", "left")]) == 1
        add_items(study, [{"prompt": "?", "outputs": {name: "x", "tea": "y"}}])
    first = study.leaderboard()[0]
    assert (first.rank, first.arm, first.answers, first.wins) == (1, COMPOSED, 4, 4)
    assert {vote.voter for vote in study.votes()} == {COMPOSED, None}
    assert {arm for _, item in list_items(study, 0, 9) for arm in item.outputs} == {COMPOSED, "tea"}
    with pytest.raises(InvalidInput, match=r"vote 2 compares .* with itself"):
        study.import_votes([("tea", COMPOSED, "left"), (COMPOSED, TAKEN_APART, "left")])
    with pytest.raises(InvalidInput, match="item 1 has two outputs of one arm"):
        add_items(study, [{"prompt": "?", "outputs": {COMPOSED: "x", TAKEN_APART: "y"}}])
    assert study.forget(TAKEN_APART) == 2
    study.add_arm("water")
    study.retire_arm(TAKEN_APART)
    delete_study(TAKEN_APART, storage)
    assert list_studies(storage) == []


def test_labels_of_tokens(storage):
    assert make_key(storage, "api", TAKEN_APART)[0].name == COMPOSED
    with pytest.raises(InvalidInput, match=r"name is 'a\\u200bb', whose character 2 is U\+200B"):
        make_key(storage, "api", "a\u200bb")

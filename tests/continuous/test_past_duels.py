"""Past duels in and out: nothing is lost on the way, and what a study has already is recognized."""

import json

import pytest

import duels
from duels import InvalidInput
from duels.continuous.tuning.files import Past, check_duels, find_known_duels, parse_duels, read_duels, write_duels
from duels.storage.storage import Storage

SPACE = duels.Space(
    {
        "x": (0.0, 1.0),
        "n": (1, 9, "int"),
        "sign": ["=warm", "-5%", "'@home", "plain"],
        "on": {"choices": [True, False]},
        "size": {"choices": [3, 2.5, "3 of them", "-1", True]},
    }
)
A = {"x": 0.25, "n": 2, "sign": "=warm", "on": True, "size": 3}
B = {"x": 0.1 + 0.2, "n": 9, "sign": "'@home", "on": False, "size": True}
EARLY, LATE = "2026-01-31T12:00:00.000+00:00", "2026-01-31T12:00:00.001+00:00"


@pytest.fixture
def study():
    return duels.create_study(space=SPACE, study_name="s", storage=Storage("sqlite://"), policy="random")


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_every_answer_survives_a_file(suffix, tmp_path, study):
    """Formulas, choices of several types, a voter who comes late, and voters of links, who get another name once."""
    past = [(A | {"size": size}, B | {"sign": "-5%"}, "left") for size in (3, 2.5, "3 of them", "-1")]
    study.import_duels(past * 40)
    study.import_duels([(A, B, "both_bad", "=ann", EARLY), (B, A, "tie", "Voter 7", LATE)])
    asked = study.ask(voter="bob")
    study.tell(asked, "right", voter="bob")
    file = str(tmp_path / f"votes.{suffix}")
    assert write_duels(study, file) == 163
    copy = duels.create_study(space=SPACE, study_name="copy", storage=Storage("sqlite://"), policy="random")
    assert copy.import_duels(read_duels(SPACE, file)) == 163
    assert copy.votes().equals(study.votes())
    settings = [(copy.duel(k).left, copy.duel(k).right) for k in range(163)]
    assert settings == [(study.duel(k).left, study.duel(k).right) for k in range(163)]
    assert [type(left["size"]) for left, _ in settings[:4]] == [int, float, str, str]
    assert copy.votes()["voter"].to_list() == [None] * 160 + ["=ann", "Voter 7 (imported)", "bob"]
    assert copy.votes()["time"].to_list()[160:162] == [EARLY, LATE]
    assert parse_duels((tmp_path / f"votes.{suffix}").read_bytes(), SPACE) == read_duels(SPACE, file)
    assert copy.check() == 327


def test_times_are_those_of_the_answers(study):
    study.import_duels([(A, B, "left", "ann", "2026-01-31T13:00:00+01:00"), (A, B, "left", "ann", 0)])
    assert study.votes()["time"].to_list() == [EARLY, "1970-01-01T00:00:00.000+00:00"]
    study.undo(0)
    study.tell(0, "right")
    assert study.votes()["time"][1] == study.events()[-1].time  # the past answer is gone
    with pytest.raises(InvalidInput, match="past duel 2: time is 'soon', expected seconds since 1970 or such as"):
        study.import_duels([(A, B, "left"), (A, B, "left", None, "soon")])
    assert study.answers == 2


def test_what_is_known_worked_by_hand(study):
    study.import_duels([(A, B, "left", "ann", EARLY), (A, B, "tie", None, EARLY), (A, B, "tie", None, EARLY)])
    cases = [
        (Past(A, B, "left", "ann", EARLY), True),
        (Past(A, B, "left", "ann", EARLY), False),  # it is there once
        (Past(A, B, "right", "ann", EARLY), False),
        (Past(A, B, "left", "bob", EARLY), False),
        (Past(A, B, "left", "ann", LATE), False),
        (Past(A | {"n": 3}, B, "left", "ann", EARLY), False),
        (Past(A | {"size": 2.5}, B, "left", "ann", EARLY), False),
        (Past(A, B, "left", "ann"), False),
        *[(Past(B, A, "tie", None, EARLY), known) for known in (True, True, False)],
    ]
    assert find_known_duels(study, [one for one, _ in cases]) == [known for _, known in cases]
    assert find_known_duels(study, [Past(B, A, "right", "ann", EARLY)]) == [True]  # the sides do not matter
    assert find_known_duels(study, [Past(B, A, "left", "ann", EARLY)]) == [False]
    study.undo(0)
    assert find_known_duels(study, [Past(A, B, "left", "ann", EARLY)]) == [False]


def test_without_times_only_all_of_them_are_known(study):
    past = check_duels(SPACE, [(A, B, "left"), (B, A, "tie")])
    study.import_duels(past)
    assert find_known_duels(study, past) == [True, True]
    assert find_known_duels(study, past[:1]) == [True]
    assert find_known_duels(study, [*past, Past(A, B, "right")]) == [False] * 3
    study.tell(study.ask(), "left")
    asked = study.duel(2)
    assert find_known_duels(study, [Past(asked.left, asked.right, "left")]) == [False]  # it was not imported
    timed = Past(asked.left, asked.right, "left", None, study.events()[-1].time)
    assert find_known_duels(study, [timed, Past(A, A, "tie")]) == [True, False]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "votes.jsonl cannot be read: line 2: "),
        pytest.param("[" * 100_000, "votes.jsonl cannot be read: line 2: ", id="deep"),
        ("[1]", r"votes.jsonl cannot be read: line 2 is \[1\], expected an object"),
        ('{"winner": "left"}', "there is no column left.x: expected left.x, .* and winner"),
    ],
)
def test_lines_that_are_no_duels(line, message, tmp_path):
    good = {f"{side}.{name}": value for side in ("left", "right") for name, value in A.items()} | {"winner": "tie"}
    file = tmp_path / "votes.jsonl"
    file.write_text(f"{json.dumps(good)}\n{line}\n")
    with pytest.raises(InvalidInput, match=message):
        read_duels(SPACE, str(file))

"""What a run of judges prints."""

import re

import pytest
from rich.cells import cell_len

import duels
from duels.judges import Answer
from duels.storage.storage import Storage
from duels.study.judging.progress import _fit_line
from duels.study.judging.result import alarm_line, money
from duels.study.stats.leaderboard import format_record, format_share
from duels.study.voters.voter_tests import Position

PROMPTS = [f"prompt {k}" for k in range(12)]
OUTPUTS = {arm: [f"{arm} {k}" for k in range(12)] for arm in ("terse", "wordy", "日本語")}
ORDER = list(OUTPUTS)


def judge(prompt, left, right):
    """The first of the arms is the best, and so on."""
    places = [ORDER.index(text.split()[0]) for text in (left, right)]
    return Answer("left" if places[0] < places[1] else "right", cost=0.004)


def found(judge=judge, outputs=OUTPUTS, **more):
    more = {"prompts": PROMPTS, "about": "these-answers", "storage": Storage("sqlite://"), "concurrency": 1} | more
    return duels.find_best(outputs, judge, **more)


def test_a_winner():
    result = found()
    verdict, *table, costs, repeated = str(result).split("\n")
    assert verdict == str(result.verdict)
    assert verdict.startswith("By the answers given on these 12 prompts: terse is the winner")
    assert [re.split(r"\s{2,}", line.strip()) for line in table] == [
        ["rank", "wins", "won–lost–tied", "arm"],
        *([str(row.rank), format_share(row), format_record(row), row.arm] for row in result.leaderboard),
    ]
    # The other two never met, and lost to the first equally often.
    assert [(row.rank, row.arm) for row in result.leaderboard] == [(1, "terse"), (2, "wordy"), (2, "日本語")]
    assert result.leaderboard[0].share > 0.9
    assert result.leaderboard[1].share == pytest.approx(result.leaderboard[2].share, abs=1e-6)
    assert {line.index(row.arm) for line, row in zip(table[1:], result.leaderboard)} == {table[0].index("arm")}
    saved = 100 * (36 - result.calls) // 36  # 3 pairs, 12 prompts
    assert result.cost == pytest.approx(0.004 * result.calls)
    of = f"{result.calls} calls, 2 of them repeats, {money(result.cost)}"  # of seed 0, the duels 5 and 10
    assert costs == f"{of}. All pairs on all items take 36 calls: {saved} % saved."
    assert repeated == "The judge gave the same answer in 2 of 2 repeated questions."


def test_without_a_verdict_nothing_is_said_to_be_saved():
    result = found(max_calls=3)
    assert str(result).split("\n")[1] == "Stopped at max_calls: raise it to continue."
    assert str(result).endswith("\n3 calls, $0.012.")
    assert "saved" not in str(result)


def test_before_the_first_answer_there_is_no_leaderboard():
    result = found(lambda left, right: "skip", max_calls=2)
    assert "rank" not in str(result)
    assert str(result).endswith("\n2 calls.")


def test_what_went_wrong_is_counted():
    result = found(lambda left, right: "perhaps", max_calls=2)
    assert str(result).endswith("\n2 calls (2 replies without a usable answer).")


def test_many_arms():
    names = [f"arm {k}" for k in range(14)]
    result = duels.find_best(names, lambda left, right: min(left, right), max_calls=20, storage=Storage("sqlite://"))
    lines = str(result).split("\n")
    assert "   …  4 more arms" in lines
    assert len([line for line in lines if line.endswith("%")]) == 0
    assert sum("  arm " in line for line in lines[2:]) == 10


def test_items_like_these():
    """14 prompts can show a winner of three arms, see `fewest_wins`; 12 cannot, and nothing is asked."""
    prompts = [f"prompt {k}" for k in range(14)]
    outputs = {arm: [f"{arm} {k}" for k in range(14)] for arm in OUTPUTS}
    result = found(outputs=outputs, prompts=prompts, about="new-items", max_calls=3)
    assert str(result).startswith("On prompts like these 14: no verdict yet: terse ranks first")
    few = found(about="new-items")
    verdict, power, reason, calls = str(few).split("\n")
    assert verdict.startswith("No verdict yet: these arms have not met. 0 answers so far.")
    assert power == "With 12 prompts no winner can be shown: 14 at least."
    assert (reason, calls) == ("No question that is left can bring a verdict.", "0 calls.")


def test_why_no_question_that_is_left_can_help():
    """On prompts like these 14, where it takes as many wins: each arm has tied once, and not with each other one."""
    prompts = [f"prompt {k}" for k in range(14)]
    outputs = {arm: [f"{arm} {k}" for k in range(14)] for arm in OUTPUTS}
    result = found(lambda left, right: "tie", outputs=outputs, prompts=prompts, about="new-items", margin=0.1)
    verdict, reason, *_ = str(result).split("\n")
    why = result.verdict.exhausted
    assert (result.ended, why.won, why.lost, why.tied) == ("exhausted", 0, 0, 1)
    assert reason == "No question that is left can bring a verdict."
    assert f"{why.arm} and {why.other} tied the only comparison." in verdict
    assert result.verdict.answers_to_go is None


def test_these_items():
    result = found(about="these-items", max_calls=3)
    assert str(result).startswith("On these 12 prompts: no verdict yet")
    ended = found(lambda left, right: "tie", about="these-items")
    assert (ended.ended, ended.calls) == ("max_calls", 36)  # as many as there are questions: 3 pairs, 12 prompts
    assert str(ended).split("\n")[1] == "Stopped at max_calls: raise it to continue."


def test_position_bias_keeps_the_judge_s_name():
    result = found({"GPT": lambda left, right: "left"}, max_calls=30, orders="one")
    assert "\nPosition bias: GPT prefers the left side in 100 % of its decisive answers." in str(result)
    assert alarm_line(Position(None, 1, 3, 0.25, True), "auto") == (
        "position bias: the judge prefers the right side in 75 % of its decisive answers; "
        "every question is now asked in both orders"
    )


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        (0, "$0.00"),
        (1234.5, "$1,234.50"),
        (0.42, "$0.42"),
        (0.1, "$0.10"),
        (0.0999, "$0.10"),
        (0.0123, "$0.012"),
        (0.05, "$0.050"),
        (0.0000123, "$0.000012"),
        (1e-9, "$0.0000000010"),
    ],
)
def test_money(dollars, text):
    assert money(dollars) == text


def test_one_line_at_the_end_if_progress_is_asked_for(capsys):
    found()
    assert capsys.readouterr() == ("", "")
    found(max_calls=3, progress=True)
    assert capsys.readouterr() == ("", "3 calls · $0.012: no winner yet (max_calls)\n")
    result = found(progress=True)
    assert capsys.readouterr().err.endswith(": terse is the winner (verdict)\n")
    assert result.winner == "terse"


@pytest.mark.parametrize(
    ("name", "width", "text"),
    [
        ("terse", 70, "12 calls · terse leads (98% sure) · about 40 calls, $0.10, 9 s left"),
        ("terse", 60, "12 calls · terse leads (98% sure) · about $0.10, 9 s left"),
        ("日本語のモデル", 66, "12 calls · 日本語のモデル leads (98% sure) · about $0.10, 9 s left"),
        ("日本語のモデル", 62, "12 calls · 日本語の… leads (98% sure) · about $0.10, 9 s left"),
        ("a prompt that is long", 40, "12 calls · a promp… leads (98% sure) ·…"),
    ],
)
def test_the_line_of_progress_fits(name, width, text):
    """Wide letters take two columns: 日本語のモデル takes 14, the rest of the shorter line 11 + 17 + 24."""
    left = [" · about 40 calls, $0.10, 9 s left", " · about $0.10, 9 s left"]
    assert _fit_line("12 calls · ", name, " leads (98% sure)", left, width) == text
    assert cell_len(text) <= width

"""What the page of a tuning study's results says."""

import pytest

import duels
from duels.continuous.tuning.result import Best, describe_next_step, headline, summarize_tuning, words

BEST = Best({"gap": 12.3456, "font": "serif"}, 0.705, 0.515, 0.85, 0.95, 0.97, {"gap": 30.0, "font": "mono"}, 24, 31.0)


def test_the_words_have_every_number():
    assert headline(BEST) == "Best so far: gap 12.3, font serif"
    assert words(BEST) == (
        "After 24 answers the model is 97 % sure that it is better than the runner-up, gap 30, font mono. "
        "Against that, it is predicted to win 71 % of duels (95 % interval: 52 to 85 %)."
    )
    assert "font mono. That is hardly more than a guess. Against that" in words(BEST._replace(sure=0.69))
    assert str(BEST._replace(sure=0.69)).endswith("the better one. That is hardly more than a guess.")
    assert str(BEST).endswith("the better one.")
    assert "is more than 99 % sure" in words(BEST._replace(sure=0.9951))
    assert (headline(BEST._replace(answers=0)), "learns" in words(BEST._replace(answers=0))) == ("No answers yet", True)


@pytest.mark.parametrize(
    ("answers", "initial", "retired", "said"),
    [
        (0, 16, False, "The first 16 questions are spread over all settings; 0 answers are there."),
        (1, 16, False, "The first 16 questions are spread over all settings; 1 answer is there."),
        (15, 16, False, "15 answers are there"),
        (16, 16, False, "Plan for about 50 answers"),
        (49, 16, False, "Plan for about 50 answers"),
        (50, 16, False, "Go on while the best setting still moves"),
        (50, 16, True, "retired"),
        (0, 0, False, "Plan for about 50 answers"),
    ],
)
def test_what_to_do_next(answers, initial, retired, said):
    assert said in describe_next_step(BEST._replace(answers=answers), initial, retired)


def test_without_enough_evidence_nothing_is_sure():
    early = BEST._replace(sure=None, evidence=3.14)
    assert headline(early) == "No preference found yet"
    assert words(early) == (
        "After 24 answers, the answers could be coin tosses (evidence 3.1, 20 is needed). More answers will tell: a "
        "clear preference shows within about 50, a weak one may take hundreds. The best guess is gap 12.3, font serif."
    )
    assert str(early).startswith("No preference found after 24 answers: the answers could be coin tosses")
    assert "sure" not in words(early) + str(early)
    assert "weak preference" in describe_next_step(early._replace(answers=50), 16, False)
    assert "Plan for about 50 answers" in describe_next_step(early._replace(answers=49), 16, False)


def test_a_glance_is_the_study_s():
    study = duels.create_study(
        space={"gap": (4.0, 40.0)}, study_name="page", storage="sqlite://", policy="eubo:initial=3"
    )
    shown = summarize_tuning(study)
    assert (shown["best"], shown["parameters"], shown["answers"], shown["seq"]) == (None, [], 0, 1)
    for _ in range(2):
        duel = study.ask()
        study.tell(duel, "left" if duel.left["gap"] > duel.right["gap"] else "right")
    study.ask()
    shown = summarize_tuning(study)
    assert (shown["answers"], shown["open"], shown["seq"], shown["retired"]) == (2, 1, 6, False)
    assert shown["best"] == study.best.as_dict()
    assert shown["parameters"] == study.slices()["parameters"]
    assert "2 answers are there" in shown["next"]

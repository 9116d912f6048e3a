"""Simulated users: which documents of a list are clicked, given how relevant each is.

The cascade model is the dependent click model of Guo, Liu & Wang (WSDM 2009): the user reads from the top, clicks with
a probability that depends on the grade, and stops after a click with another probability. In the position-based model
(Craswell et al., WSDM 2008), the user looks at each place independently. Both are one table of probabilities: to look
at a place, to click a grade, and to stop after clicking it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput, UnknownName

# click and stop probabilities by grade; Hofmann, Whiteson & de Rijke use these three users
PRESETS: dict[str, dict[int, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "perfect": {
        2: ((0.0, 1.0), (0.0, 0.0)),
        3: ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0)),
        5: ((0.0, 0.2, 0.4, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
    },
    "navigational": {
        2: ((0.05, 0.95), (0.2, 0.9)),
        3: ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
        5: ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
    },
    "informational": {
        2: ((0.4, 0.9), (0.1, 0.5)),
        3: ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
        5: ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
    },
}


POSITION = "position-based"
PLACES = 100  # of the preset `position-based`
NOISE = 0.1  # the probability of a click on an irrelevant document that is looked at


class ClickTable(NamedTuple):
    """The probabilities that the kernel reads."""

    look: np.ndarray  # (L,) float64: that the user looks at a place after reaching it
    click: np.ndarray  # (G,) float64: to click a document of each grade
    stop: np.ndarray  # (G,) float64: to stop after clicking it


def draw_clicks(
    table: ClickTable, grades: np.ndarray, length: int, clicked: np.ndarray, rng: np.random.Generator
) -> int:
    """Mark which of the first `length` documents are clicked, and count them.

    One draw per place, one more after a click.
    """
    clicks = 0
    for k in range(length):
        clicked[k] = False
    for k in range(length):
        grade = grades[k]
        if rng.random() < table.look[k] * table.click[grade]:
            clicked[k] = True
            clicks += 1
            if rng.random() < table.stop[grade]:
                break
    return clicks


@dataclass(frozen=True)
class ClickModel:
    """A simulated user; make one with `cascade`, `position_based` or `click_model`.

    Attributes:
        name: The name in results.
        click: The probability of a click, by grade.
        stop: The probability of stopping after a click, by grade.
        look: The probability of looking, by place; None means every place that is reached.
    """

    name: str
    click: tuple[float, ...]
    stop: tuple[float, ...]
    look: tuple[float, ...] | None = None

    @property
    def grades(self) -> int:
        """The number of grades that the model knows."""
        return len(self.click)

    def table(self, length: int, grades: int) -> ClickTable:
        """Return the probabilities for lists of `length` documents with `grades` different grades.

        Raises:
            InvalidInput: If the model does not know so many grades or places.
        """
        if grades > self.grades:
            raise InvalidInput(
                f"click model {self.name!r} has probabilities for {self.grades} grades (0 to {self.grades - 1}), "
                f"but the documents have grades up to {grades - 1}: give it a longer table"
            )
        if self.look is not None and length > len(self.look):
            raise InvalidInput(
                f"click model {self.name!r} knows {len(self.look)} places, but lists have {length}: "
                "give it more places or make the lists shorter"
            )
        look = np.ones(length) if self.look is None else np.array(self.look[:length])
        return ClickTable(look, np.array(self.click), np.array(self.stop))


def cascade(click: Sequence[float], stop: Sequence[float], name: str = "cascade") -> ClickModel:
    """Make a user who reads from the top, clicks grade g with probability `click[g]` and then stops with `stop[g]`.

    Raises:
        InvalidInput: If these are not probabilities, or not equally many.
    """
    model = ClickModel(name, _probabilities("click", click), _probabilities("stop", stop))
    if len(model.click) != len(model.stop):
        raise InvalidInput(f"click has {len(model.click)} grades and stop {len(model.stop)}: expected the same number")
    return model


def position_based(click: Sequence[float], look: Sequence[float], name: str = POSITION) -> ClickModel:
    """Make a user who looks at place k with probability `look[k]` and clicks grade g there with `click[g]`.

    Raises:
        InvalidInput: If these are not probabilities.
    """
    attractive = _probabilities("click", click)
    return ClickModel(name, attractive, (0.0,) * len(attractive), _probabilities("look", look))


def click_model(model: str | ClickModel, grades: int = 2) -> ClickModel:
    """Find a click model by name.

    Args:
        model: `perfect`, `navigational` or `informational` (for 2, 3 or 5 grades), `position-based` (for any number),
            or a model, which is returned unchanged.
        grades: The number of grades of the documents.

    Raises:
        UnknownName: If there is no such preset.
        InvalidInput: If the preset has no table for so many grades.
    """
    if isinstance(model, ClickModel):
        return model
    if not isinstance(model, str):
        raise InvalidInput(
            f"{model!r} is not a click model: expected a name such as 'navigational', or cascade(click, stop)"
        )
    if model not in (*PRESETS, POSITION):
        raise UnknownName("click model", model, (*PRESETS, POSITION), "duels.rankers.clicks")
    fitting = max(grades, 2)
    if model == POSITION:
        return _make_looking_down(fitting)
    if fitting not in PRESETS[model]:
        raise InvalidInput(
            f"click model {model!r} has tables for 2, 3 and 5 grades, but the documents have {grades}: "
            "pass duels.rankers.clicks.cascade(click, stop) with your own"
        )
    return cascade(*PRESETS[model][fitting], name=model)


def _make_looking_down(grades: int) -> ClickModel:
    """The user of Joachims, Swaminathan & Schnabel (WSDM 2017), η = 1: looks with 1/k, clicks with noise.

    Click probabilities of the grades in between are proportional to their gains 2^g − 1.
    """
    gains = [(2**grade - 1) / (2 ** (grades - 1) - 1) for grade in range(grades)]
    return position_based([NOISE + (1 - NOISE) * gain for gain in gains], [1 / k for k in range(1, PLACES + 1)])


def _probabilities(what: str, values: Sequence[float]) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    if not numbers:
        raise InvalidInput(f"{what} is empty: expected a probability for each grade or place")
    for k, number in enumerate(numbers):
        if not 0 <= number <= 1:
            raise InvalidInput(f"{what}[{k}] = {number:g}, expected a probability between 0 and 1")
    return numbers

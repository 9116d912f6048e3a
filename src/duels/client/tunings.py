"""Tuning studies on a server."""

import io
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from ..checks import check_int
from ..continuous.spaces import Space
from ..continuous.tuning.files import PastDuel, check_duels, rows_of
from ..continuous.tuning.log import TuningDuel
from ..continuous.tuning.result import Best
from ..continuous.tuning.templates import check_template, render
from .connection import Again, Connection, Json, row_of
from .studies import Remote

if TYPE_CHECKING:
    import polars as pl

AT_ONCE = 10  # duels of one request: choosing one takes up to a second


class RemoteTuningStudy(Remote[TuningDuel]):
    """A tuning study on a server: `ask` for two settings, `tell` which is better, look at the `best` one.

    It works like `TuningStudy`, and is created by `Client.create_study(space=…)`.

    Example:
        >>> study = client.load_study("voice")  # doctest: +SKIP
        >>> duel = study.ask(voter="ann")  # doctest: +SKIP
        >>> duel.left  # doctest: +SKIP
        {'temperature': 0.731204, 'style': 'warm'}
        >>> study.tell(duel, "left", voter="ann")  # doctest: +SKIP
        >>> study.best.setting  # doctest: +SKIP
        {'temperature': 0.702511, 'style': 'warm'}
    """

    def __init__(self, client: Connection, found: Mapping[str, Json]) -> None:
        super().__init__(client, found["name"], found["policy"])
        self.space: Space = Space(found["space"])
        self.confidence = float(found["goal"]["confidence"])

    @property
    def answers(self) -> int:
        """How many answers count: no skips, and nothing that was taken back."""
        return int(self._get()["answers"])

    @overload
    def ask(self, n: Literal[1] = 1, *, voter: str | None = None) -> TuningDuel: ...  # type: ignore[overload-overlap]

    @overload
    def ask(self, n: int, *, voter: str | None = None) -> list[TuningDuel]: ...

    def ask(self, n: int = 1, *, voter: str | None = None) -> TuningDuel | list[TuningDuel]:
        """Ask for the next duel, as `TuningStudy.ask`; more than 10 duels take several requests.

        Args:
            n: How many duels to ask for, up to 1,000.
            voter: Who is asked; stored with the question.

        Returns:
            The duel, or a list of `n` duels if that is not 1.

        Raises:
            Conflict: If the study was retired.
        """
        n = check_int("n", n, 1, 1000)
        duels = self._ask(n, AT_ONCE, voter=voter)
        return duels[0] if n == 1 else duels

    @property
    def best(self) -> Best:
        """The best setting so far, its predicted share of wins against the runner-up, and how sure that is."""
        return row_of(Best, self._get("/best"))

    def slices(self) -> dict[str, Any]:
        """Return slices of the model through the best setting, as `TuningStudy.slices`."""
        found: dict[str, Any] = self._get("/slices")
        return found

    def votes(self) -> "pl.DataFrame":
        """Return the answers that count as a data frame, as `TuningStudy.votes`."""
        import polars as pl

        content = self._client._send("GET", f"{self._path}/export", query={"format": "parquet"}).content
        return pl.read_parquet(io.BytesIO(content))

    def import_duels(self, duels: "Iterable[PastDuel] | pl.DataFrame") -> int:
        """Add past duels as if they had been asked and answered here: all of them or, after an error, none.

        Args:
            duels: `(left, right, winner)` of each, or a data frame of `votes`, see `TuningStudy.import_duels`.

        Returns:
            How many were added.

        Raises:
            InvalidInput: If a setting does not belong to the space, or a winner is something else.

        Example:
            >>> one, other = {"temperature": 0.2, "style": "warm"}, {"temperature": 0.9, "style": "warm"}
            >>> study.import_duels([(one, other, "left")])  # doctest: +SKIP
            1
        """
        lines = [json.dumps(row) for row in rows_of(check_duels(self.space, duels))]
        return int(self._post("/import", content="\n".join(lines).encode())["imported"]) if lines else 0

    @property
    def template(self) -> str | None:
        """The page on which voters see a setting, see `set_template`; None if they see its values."""
        found: str | None = self._get("/template")["html"]
        return found

    def set_template(self, template: str | None, *, scripts: bool | None = None) -> None:
        """Set the page on which voters see each of the two settings. This needs an admin's token.

        Args:
            template: An HTML page, with `{{ name }}` wherever the value of a parameter belongs, see
                `TuningStudy.set_template`. None shows the values themselves.
            scripts: Whether scripts of the page run; by default they do not, or as it was set before.

        Raises:
            InvalidInput: If a parameter does not exist, none is used, or the page has more than a million characters.

        Example:
            >>> study.set_template("<p>{{ style }} at {{ temperature }}</p>")  # doctest: +SKIP
        """
        html = None if template is None else check_template(template, self.space)
        if scripts is not None and not scripts:  # no script runs before it is meant to: off first, and on last
            self._post("/scripts", Again.ALWAYS, scripts=False)
        self._client._send("PUT", f"{self._path}/template", {"html": html})
        if scripts:
            self._post("/scripts", Again.ALWAYS, scripts=True)

    def render(self, setting: Mapping[str, object]) -> str | None:
        """Return the page of a setting; None if the study has no template.

        Raises:
            InvalidInput: If it is not a setting of the space.
        """
        template, found = self.template, self.space.check(setting)
        return None if template is None else render(template, found)

    def _duel(self, values: Mapping[str, Json]) -> TuningDuel:
        return row_of(TuningDuel, values)

"""Studies that compare arms, on a server."""

import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Unpack, overload

from ..checks import check_int
from ..study.allocation import MOST, Allocation
from ..study.duels import Duel, DuelItem
from ..study.impressions import Document, Impression, impression_number
from ..study.leaderboard import RankRow
from ..study.standing import Chance, Standing
from ..study.tally import LeaderboardRow, PairRow
from ..study.verdict import Verdict
from ..votes.files import Reading, VoteSource, read_votes
from ..votes.item_files import AddedItems, ItemSource, Output, read_items
from ..votes.votes import Votes
from ..votes.written import write_votes
from .connection import Again, Json, as_json, quote_path, row_of
from .remote import Remote

AT_ONCE = 1000  # duels of one request


class RemoteStudy(Remote[Duel]):
    """A study on a server: `ask` for a duel, `tell` who won, look at the `verdict`. It works like `Study`."""

    @property
    def arms(self) -> list[str]:
        """The active arms."""
        return [arm["name"] for arm in self._get()["arms"] if arm["active"]]

    @overload
    def ask(  # type: ignore[overload-overlap]
        self, n: Literal[1] = 1, *, voter: str | None = None, allow_self: bool = True
    ) -> Duel: ...

    @overload
    def ask(self, n: int, *, voter: str | None = None, allow_self: bool = True) -> list[Duel]: ...

    def ask(self, n: int = 1, *, voter: str | None = None, allow_self: bool = True) -> Duel | list[Duel]:
        """Ask for the next duel, as `Study.ask`; more than 1,000 duels take several requests.

        Args:
            n: How many duels to ask for, up to 10,000.
            voter: Who is asked; stored with the question.
            allow_self: False where people vote, so that an arm never meets itself.

        Returns:
            The duel, or a list of `n` duels if that is not 1.

        Raises:
            Conflict: If the study was retired.
        """
        n = check_int("n", n, 1, 10_000)
        duels = self._ask(n, AT_ONCE, voter=voter, allow_self=allow_self)
        return duels[0] if n == 1 else duels

    def allocate(self, n: int) -> list[Allocation]:
        """Return how often to ask each pair, for systems that decide by the batch, as `Study.allocate`."""
        return [row_of(Allocation, one) for one in self._get("/allocation", n=check_int("n", n, 1, MOST))["allocation"]]

    def add_arm(self, name: str) -> None:
        """Add an arm while the study runs."""
        self._post("/arms", name=name)

    def retire_arm(self, name: str) -> None:
        """Take an arm out of the race. Its answers are kept, and no longer count for the verdict on the others."""
        self._post(f"/arms/{quote_path(name)}/retire")

    def import_votes(self, votes: VoteSource, **reading: Unpack[Reading]) -> int:
        """Add past votes, from anything that `read_votes` reads: all of them or, after an error, none.

        Warns as `Study.import_votes` does.

        Args:
            votes: Anything that `read_votes` reads.
            **reading: As in `read_votes`: columns, on_error and without.

        Returns:
            How many votes were added.
        """
        past = read_votes(votes, **reading)
        for note in past.unread_notes:
            warnings.warn(note, stacklevel=2)
        if not len(past):
            return 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "votes.jsonl"
            write_votes(past, path)
            made = self._post("/import", content=path.read_bytes())
        if made["note"] is not None:
            warnings.warn(made["note"], stacklevel=2)
        return int(made["imported"])

    def votes(self) -> Votes:
        """Return the answers that count as votes, for `write_votes`; self-duels are left out."""
        content = self._client._send("GET", f"{self._path}/export", query={"format": "jsonl"}).content
        return read_votes(content, format="jsonl") if content.strip() else read_votes([])

    def add_items(self, items: ItemSource) -> AddedItems:
        """Add items, from anything that `read_items` reads: all of them or, after an error, none.

        Items that the study has, by their prompts, get the outputs that they lack; see `duels.study.items.add_items`.
        """
        found = read_items(items, fewest=1)
        rows = (one._asdict() | {"outputs": {a: o._asdict() for a, o in one[1].items()}} for one in found)
        made = self._post("/items", content=b"\n".join(map(as_json, rows)))
        return AddedItems(made["items"], made["outputs"])

    def leaderboard(self, confidence: float | None = None) -> list[LeaderboardRow]:
        """Return one row per arm, best first."""
        return [row_of(LeaderboardRow, one) for one in self._get("/leaderboard", confidence=confidence)["leaderboard"]]

    def preferences(self, confidence: float | None = None) -> list[PairRow]:
        """Return one row per pair of arms: wins, counts, estimate and interval."""
        return [row_of(PairRow, one) for one in self._pages("preferences", confidence=confidence)]

    def verdict(self, confidence: float | None = None, margin: float | None = None) -> Verdict:
        """Return who is best, as far as that is certain. It stays valid however often you look."""
        found = self._get("/verdict", confidence=confidence, margin=margin)
        return Verdict.from_dict(found)

    def standing(self) -> Standing:
        """Estimate, before the verdict, how likely each arm is the best and how many more answers are needed."""
        found = self._get("/standing")
        return row_of(Standing, found | {"chances": tuple(row_of(Chance, one) for one in found["chances"])})

    def ranking(self) -> list[RankRow]:
        """Return the active arms in order, and which ranks are certain, as `Study.ranking`."""
        return [row_of(RankRow, one) for one in self._get("/ranking")["ranking"]]

    def interleave(
        self,
        rankings: Mapping[str, Sequence[Document]],
        duel: Duel | int | None = None,
        *,
        method: str = "team-draft",
        length: int = 10,
        missing: str = "last",
        voter: str | None = None,
    ) -> Impression:
        """Ask for a duel, and return the list to show: the interleaved rankings of its two arms.

        Args:
            rankings: For each active arm its documents, text or whole numbers, best first; empty if it found none.
            duel: A duel that was asked before. Then only the rankings of its two arms are needed, and the same list is
                returned every time.
            method: As in `duels.ranking.interleave`.
            length: As in `duels.ranking.interleave`.
            missing: As in `duels.ranking.interleave`.
            voter: Who sees the list.

        Returns:
            The list; for a self-duel, the ranking of its one arm.
        """
        shown = self._post(
            "/interleave",
            Again.REFUSED if duel is None else Again.ALWAYS,
            rankings=rankings,
            duel=None if duel is None else self._number(duel),
            method=method,
            length=length,
            missing=missing,
            voter=voter,
        )
        return row_of(Impression, shown | {"id": shown["impression"]})

    def clicks(self, impression: Impression | int, clicks: Iterable[Document], *, voter: str | None = None) -> str:
        """Answer a duel by the clicks on its list.

        Args:
            impression: The list, or its id.
            clicks: All documents that were clicked.
            voter: Who clicked.

        Returns:
            Which side the clicks prefer: left, right or tie.
        """
        number = impression_number(impression)
        return str(self._post("/clicks", Again.ALWAYS, impression=number, clicks=clicks, voter=voter)["answer"])

    def _duel(self, values: Mapping[str, Json]) -> Duel:
        duel, item = row_of(Duel, values), values.get("item")
        if item is None:
            return duel
        sides = {side: None if item[side] is None else row_of(Output, item[side]) for side in ("left", "right")}
        return duel._replace(item=DuelItem(item["number"], item["prompt"], **sides))

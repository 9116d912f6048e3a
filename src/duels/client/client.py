"""A server's studies by name: create, load, list and delete them."""

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from ..errors import InvalidInput, format_count
from ..study.create import LEASE, StudyInfo
from ..study.stats.about import About
from .connection import Again, Connection, Json, quote_path, row_of
from .studies import ROOT, RemoteStudy

if TYPE_CHECKING:
    from ..continuous.spaces import Space
    from .tunings import RemoteTuningStudy


class Client(Connection):
    """A connection to a server, created by `connect`; threads may share it. Close it, or use it in a `with` block."""

    def create_study(
        self,
        arms: Iterable[str],
        study_name: str = "study",
        policy: str | None = None,
        *,
        confidence: float | None = None,
        margin: float | None = None,
        after: Literal["stop", "rank"] | None = None,
        about: About | None = None,
        horizon: int | None = None,
        seed: int = 0,
        lease: float = LEASE,
        load_if_exists: bool = False,
    ) -> RemoteStudy:
        """Create a study on the server, as `duels.create_study`; only built-in policies can be used.

        Args:
            arms: The names of the arms, at least two.
            study_name: The study's name, unique on the server.
            policy: What chooses the duels, such as `"rucb:alpha=0.6"`; by default `verdict`, which needs the fewest
                answers.
            confidence: The probability that no verdict of the study is ever wrong; by default 0.95.
            margin: If above 0, an arm may be declared practically tied with the best, see `Study.verdict`. By default
                0, where arms that are equally good never get a verdict.
            after: What to do when the winner is known: `"stop"` (the default), or `"rank"` the others too.
            about: What the verdict is about, see `duels.create_study`.
            horizon: How many duels there will be, for policies that need to know.
            seed: Of the policy's random choices.
            lease: Seconds after which a duel without an answer no longer counts as open.
            load_if_exists: Load the study of that name if there is one; it must have these arms, and this policy and
                goal if they are given.

        Returns:
            The study.

        Raises:
            Conflict: If there is a study of that name already.
        """
        body: dict[str, object] = {"name": study_name, "arms": arms, "horizon": horizon}
        body |= {"policy": None if policy is None else str(policy), "confidence": confidence, "margin": margin}
        body |= {"after": after, "about": about, "seed": seed, "lease": lease, "load_if_exists": load_if_exists}
        created = self._send("POST", ROOT[:-1], body, Again.ALWAYS if load_if_exists else Again.UNSENT).json()
        if "policy" in created.get("notices", {}):
            warnings.warn(created["notices"]["policy"], stacklevel=2)
        return RemoteStudy(self, created["name"], created["policy"])

    def load_study(self, study_name: str) -> RemoteStudy:
        """Load a study.

        Raises:
            UnknownName: If there is no such study.
            InvalidInput: If the study tunes parameters.
        """
        found = self._find(study_name)
        if found["space"] is not None:
            parameters = format_count(len(found["space"]), "parameter")
            raise InvalidInput(
                f"study {found['name']!r} tunes {parameters} and has no arms to compare: load it with "
                "client.load_tuning, and see its best setting with study.best"
            )
        return RemoteStudy(self, found["name"], found["policy"])

    def create_tuning(
        self,
        space: "Space | Mapping[str, object]",
        study_name: str = "tuning",
        policy: str | None = None,
        *,
        template: str | None = None,
        confidence: float | None = None,
        seed: int = 0,
        lease: float = LEASE,
        load_if_exists: bool = False,
    ) -> "RemoteTuningStudy":
        """Create a study that tunes parameters on the server, as `duels.create_tuning`.

        Args:
            space: The parameters, see `duels.Space`.
            study_name: The study's name, unique on the server.
            policy: What chooses the duels, such as `"gp_rucb:beta=3"`; by default `eubo`.
            template: The page on which voters see a setting, see `RemoteTuningStudy.set_template`; by default they see
                its values. A study that exists keeps its own.
            confidence: The level of the intervals that are shown; by default 0.95.
            seed: Of the policy's random choices.
            lease: Seconds after which a duel without an answer no longer counts as open.
            load_if_exists: Load the study of that name if there is one; it must have this space, and this policy and
                confidence if they are given.

        Returns:
            The study.

        Raises:
            Conflict: If there is a study of that name already, or, with `load_if_exists`, a different one.
            InvalidInput: If an argument cannot be used.

        Example:
            >>> space = {"temperature": (0.0, 1.5), "style": ["terse", "warm"]}
            >>> study = client.create_tuning(space, "voice")  # doctest: +SKIP
            >>> study.ask().left  # doctest: +SKIP
            {'temperature': 0.731204, 'style': 'warm'}
        """
        from ..continuous.spaces import Space
        from ..continuous.tuning.templates import check_template
        from .tunings import RemoteTuningStudy  # takes a while to load

        found = Space(space)
        page = None if template is None else check_template(template, found)
        body: dict[str, object] = {"name": study_name, "space": found.to_dict(), "template": page}
        body |= {"policy": None if policy is None else str(policy), "confidence": confidence, "seed": seed}
        body |= {"lease": lease, "load_if_exists": load_if_exists}
        again = Again.ALWAYS if load_if_exists else Again.UNSENT
        return RemoteTuningStudy(self, self._send("POST", "/api/tunings", body, again).json())

    def load_tuning(self, study_name: str) -> "RemoteTuningStudy":
        """Load a tuning study.

        Raises:
            UnknownName: If there is no such study.
            InvalidInput: If the study compares arms.

        Example:
            >>> client.load_tuning("voice").best.setting  # doctest: +SKIP
            {'temperature': 0.702511, 'style': 'warm'}
        """
        from .tunings import RemoteTuningStudy  # takes a while to load

        found = self._find(study_name)
        if found.get("space") is None:
            raise InvalidInput(
                f"study {found['name']!r} compares arms and tunes no parameters: load it with client.load_study"
            )
        return RemoteTuningStudy(self, found)

    def list_studies(self) -> list[StudyInfo]:
        """List all studies of the server, oldest first: those that compare arms, and those that tune parameters."""
        return [_info(one) for one in self._send("GET", ROOT[:-1]).json()["studies"]]

    def delete_study(self, study_name: str) -> None:
        """Delete a study with all its answers. This cannot be undone, and needs an admin's token.

        Raises:
            UnknownName: If there is no such study.
        """
        self._send("DELETE", ROOT + quote_path(study_name), again=Again.UNSENT)

    def _find(self, study_name: str) -> dict[str, Json]:
        found: dict[str, Json] = self._send("GET", ROOT + quote_path(study_name)).json()
        return found


def connect(url: str, token: str | None = None, *, timeout: float = 30.0) -> Client:
    """Connect to a server.

    Args:
        url: The server's address, such as `https://duels.example.org`.
        token: From `duels token create`; None for a server that was started with `--open`.
        timeout: Seconds after which an unanswered request is an error.

    Returns:
        A client, whose studies have the methods of local ones.

    Raises:
        InvalidInput: If the address or the token cannot be one.

    Example:
        >>> client = duels.connect("https://duels.example.org", token)  # doctest: +SKIP
        >>> study = client.load_study("prompts")  # doctest: +SKIP
    """
    return Client(url, token, timeout)


def _info(one: Mapping[str, Json]) -> StudyInfo:
    """What the list says about a study; its arms are unknown if it is damaged."""
    space, arms = one.get("space"), one["arms"]
    active = None if arms is None or space is not None else sum(arm["active"] for arm in arms)
    known = {"damaged": None, "parameters": None if space is None else len(space)}
    return row_of(StudyInfo, known | dict(one) | {"arms": active})

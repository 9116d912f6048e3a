"""A server's studies by name: create, load, list and delete them."""

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from ..errors import InvalidInput
from ..study.create import LEASE, StudyInfo
from ..study.stats.about import About
from .connection import Again, Connection, Json, quote_path, row_of
from .studies import ROOT, RemoteStudy

if TYPE_CHECKING:
    from ..continuous.spaces import Space
    from .tunings import RemoteTuningStudy


class Client(Connection):
    """A connection to a server, created by `connect`; threads may share it. Close it, or use it in a `with` block."""

    @overload
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
    ) -> RemoteStudy: ...

    @overload
    def create_study(
        self,
        arms: None = None,
        study_name: str = "study",
        policy: str | None = None,
        *,
        space: "Space | Mapping[str, object]",
        template: str | None = None,
        confidence: float | None = None,
        seed: int = 0,
        lease: float = LEASE,
        load_if_exists: bool = False,
    ) -> "RemoteTuningStudy": ...

    def create_study(
        self,
        arms: Iterable[str] | None = None,
        study_name: str = "study",
        policy: str | None = None,
        *,
        space: "Space | Mapping[str, object] | None" = None,
        template: str | None = None,
        confidence: float | None = None,
        margin: float | None = None,
        after: Literal["stop", "rank"] | None = None,
        about: About | None = None,
        horizon: int | None = None,
        seed: int = 0,
        lease: float = LEASE,
        load_if_exists: bool = False,
    ) -> "RemoteStudy | RemoteTuningStudy":
        """Create a study on the server, as `duels.create_study`; only built-in policies can be used.

        Args:
            arms: The names of the arms, at least two; left out with a space.
            study_name: The study's name, unique on the server.
            policy: What chooses the duels, such as `"rucb:alpha=0.6"`; by default `verdict`, which needs the fewest
                answers. With a space, such as `"gp_rucb:beta=3"`; by default `eubo`.
            space: The parameters of settings, see `duels.Space`.
            template: With a space, the page on which voters see a setting, see `RemoteTuningStudy.set_template`; by
                default they see its values. A study that exists keeps its own.
            confidence: The probability that no verdict of the study is ever wrong; by default 0.95. With a space, the
                level of the intervals that are shown.
            margin: If above 0, an arm may be declared practically tied with the best, see `Study.verdict`. By default
                0, where arms that are equally good never get a verdict.
            after: What to do when the winner is known: `"stop"` (the default), or `"rank"` the others too.
            about: What the verdict is about, see `duels.create_study`.
            horizon: How many duels there will be, for policies that need to know.
            seed: Of the policy's random choices.
            lease: Seconds after which a duel without an answer no longer counts as open.
            load_if_exists: Load the study of that name if there is one; it must have these arms or this space, and this
                policy and goal if they are given.

        Returns:
            The study.

        Raises:
            Conflict: If there is a study of that name already, or, with `load_if_exists`, a different one.
            InvalidInput: If an argument cannot be used.

        Example:
            >>> space = {"temperature": (0.0, 1.5), "style": ["terse", "warm"]}
            >>> study = client.create_study(space=space, study_name="voice")  # doctest: +SKIP
            >>> study.ask().left  # doctest: +SKIP
            {'temperature': 0.731204, 'style': 'warm'}
        """
        body: dict[str, object] = {"name": study_name, "policy": None if policy is None else str(policy)}
        body |= {"confidence": confidence, "seed": seed, "lease": lease, "load_if_exists": load_if_exists}
        of_arms = {"arms": arms, "margin": margin, "after": after, "about": about, "horizon": horizon}
        again = Again.ALWAYS if load_if_exists else Again.UNSENT
        if space is not None:
            if given := [name for name, value in of_arms.items() if value is not None]:
                raise InvalidInput(f"{given[0]} is for studies that compare arms: leave it out, or leave out space")
            return self._create_tuning(space, template, body, again)
        if arms is None or template is not None:
            found = "nothing to compare" if arms is None else "arms, and a template is for settings"
            raise InvalidInput(f"the study has {found}: expected arms, or a space of parameters to tune")
        created = self._send("POST", ROOT[:-1], body | of_arms, again).json()
        if "policy" in created.get("notices", {}):
            warnings.warn(created["notices"]["policy"], stacklevel=2)
        return RemoteStudy(self, created["name"], created["policy"])

    def _create_tuning(
        self, space: "Space | Mapping[str, object]", template: str | None, body: dict[str, object], again: Again
    ) -> "RemoteTuningStudy":
        from ..continuous.spaces import Space
        from ..continuous.tuning.templates import check_template
        from .tunings import RemoteTuningStudy  # takes a while to load

        found = Space(space)
        page = None if template is None else check_template(template, found)
        body |= {"space": found.to_dict(), "template": page}
        return RemoteTuningStudy(self, self._send("POST", "/api/tunings", body, again).json())

    def load_study(self, study_name: str) -> Any:
        """Load a study: a `RemoteStudy` if it compares arms, a `RemoteTuningStudy` if it tunes parameters.

        Raises:
            UnknownName: If there is no such study.

        Example:
            >>> client.load_study("voice").best.setting  # doctest: +SKIP
            {'temperature': 0.702511, 'style': 'warm'}
        """
        found = self._send("GET", ROOT + quote_path(study_name)).json()
        if found.get("space") is None:
            return RemoteStudy(self, found["name"], found["policy"])
        from .tunings import RemoteTuningStudy  # takes a while to load

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

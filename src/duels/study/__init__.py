"""Live studies: which arms to compare next, what the answers say so far, and when they are enough.

The rules about duels, answers, voters and verdicts belong here, free of HTTP. How rows are stored is in `storage`.
"""

from typing import TYPE_CHECKING

from .. import _lazy_names

_HOMES = {
    "Study": "study",
    "Allocation": "allocation",
    "Duel": "duels",
    "LogEntry": "duels",
    "Impression": "impressions",
    "StudyInfo": "catalogue",
    "create_study": "catalogue",
    "load_study": "catalogue",
    "delete_study": "catalogue",
    "list_studies": "catalogue",
    "add_items": "items",
    "Verdict": "verdict",
    "Goal": "goal",
    "Standing": "standing",
    "RankRow": "leaderboard",
    "LeaderboardRow": "tally",
    "PairRow": "tally",
    "Tally": "tally",
    "Position": "positions",
    "Sides": "positions",
    "Repeatability": "repeatability",
    "Agreement": "agreement",
    "agreements": "agreement",
    "VoterAgreement": "voter_agreement",
    "VoterRow": "voter_agreement",
    "Analysis": "analysis",
    "analyze": "analysis",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from .agreement import Agreement, agreements
    from .allocation import Allocation
    from .analysis import Analysis, analyze
    from .catalogue import StudyInfo, create_study, delete_study, list_studies, load_study
    from .duels import Duel, LogEntry
    from .goal import Goal
    from .impressions import Impression
    from .items import add_items
    from .leaderboard import RankRow
    from .positions import Position, Sides
    from .repeatability import Repeatability
    from .standing import Standing
    from .study import Study
    from .tally import LeaderboardRow, PairRow, Tally
    from .verdict import Verdict
    from .voter_agreement import VoterAgreement, VoterRow

__getattr__, __dir__ = _lazy_names(__name__, _HOMES)

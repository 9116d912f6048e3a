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
    from .allocation import Allocation
    from .analyze import Analysis, analyze
    from .create import StudyInfo, create_study, delete_study, list_studies, load_study
    from .duels import Duel, LogEntry
    from .impressions import Impression
    from .items import add_items
    from .stats.forecast import Standing
    from .stats.goal import Goal
    from .stats.leaderboard import RankRow
    from .stats.tally import LeaderboardRow, PairRow, Tally
    from .stats.verdict import Verdict
    from .study import Study
    from .voters.agreement import Agreement, VoterAgreement, VoterRow, agreements
    from .voters.voter_tests import Position, Repeatability, Sides

__getattr__, __dir__ = _lazy_names(__name__, _HOMES)

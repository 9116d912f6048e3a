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
    "StudyInfo": "create",
    "delete_study": "create",
    "list_studies": "create",
    "add_items": "items",
    "Verdict": "stats.verdict",
    "Goal": "stats.goal",
    "Forecast": "stats.forecast",
    "RankRow": "stats.leaderboard",
    "LeaderboardRow": "stats.tally",
    "PairRow": "stats.tally",
    "Tally": "stats.tally",
    "Position": "voters.voter_tests",
    "Sides": "voters.voter_tests",
    "Repeatability": "voters.voter_tests",
    "Agreement": "voters.agreement",
    "compare_judges": "voters.agreement",
    "VoterAgreement": "voters.agreement",
    "VoterRow": "voters.agreement",
    "Analysis": "analysis",
    "JudgeResult": "judging.result",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from .allocation import Allocation
    from .analysis import Analysis
    from .create import StudyInfo, delete_study, list_studies
    from .duels import Duel, LogEntry
    from .impressions import Impression
    from .items import add_items
    from .judging.result import JudgeResult
    from .stats.forecast import Forecast
    from .stats.goal import Goal
    from .stats.leaderboard import RankRow
    from .stats.tally import LeaderboardRow, PairRow, Tally
    from .stats.verdict import Verdict
    from .study import Study
    from .voters.agreement import Agreement, VoterAgreement, VoterRow, compare_judges
    from .voters.voter_tests import Position, Repeatability, Sides

__getattr__, __dir__ = _lazy_names(__name__, _HOMES)

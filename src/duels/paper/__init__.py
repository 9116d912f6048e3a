"""The paper's experiment in one command: matrix, results, figures, report, and which of the paper's claims hold.

Only code about this one paper and the report belongs here. What any experiment needs is in `experiments` and `figures`.
"""

from typing import TYPE_CHECKING

from .. import _lazy_names

_HOMES = {
    "Claim": "claims",
    "paper_claims": "claims",
    "claims_text": "claims",
    "write_report": "report",
    "Reproduction": "reproduction",
    "reproduce": "reproduction",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from .claims import Claim, claims_text, paper_claims
    from .report import write_report
    from .reproduction import Reproduction, reproduce

__getattr__, __dir__ = _lazy_names(__name__, _HOMES)

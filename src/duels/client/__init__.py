"""Studies on a server, with the same methods as local ones.

`client` creates and loads them, `studies` and `tunings` have the two kinds, `remote` what they share, and `connection`
the requests. Nothing of a server's own belongs here.
"""

from typing import TYPE_CHECKING

from .. import _lazy_names

_HOMES = {
    "connect": "client",
    "Client": "client",
    "RemoteStudy": "studies",
    "RemoteTuningStudy": "tunings",
    "Change": "connection",
    "Again": "connection",
    "PAUSES": "connection",
}

__all__ = [name for name in _HOMES if name != "PAUSES"]

if TYPE_CHECKING:
    from .client import Client, connect
    from .connection import PAUSES, Again, Change
    from .studies import RemoteStudy
    from .tunings import RemoteTuningStudy

__getattr__, __dir__ = _lazy_names(__name__, _HOMES)

"""The script that draws charts in a browser, out of vl-convert: no copy of it is in the repository."""

import contextlib
from functools import cache
from importlib.metadata import version

from ..errors import InvalidInput
from ..files import atomic_write
from ..ranking.cache import folder


@cache
def vega_bundle() -> bytes:
    """Sets `window.vegaEmbed`. Made in a second, and kept on disk for the next start where that can be."""
    try:
        kept = folder() / f"vega-{version('vl-convert-python')}.js"
    except RuntimeError:  # there is no home directory
        return _made()
    with contextlib.suppress(OSError):
        return kept.read_bytes()
    script = _made()
    with contextlib.suppress(OSError, InvalidInput):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(kept) as unfinished:
            unfinished.write_bytes(script)
    return script


def _made() -> bytes:
    import vl_convert

    return vl_convert.javascript_bundle().encode()  # type: ignore[call-arg]

"""The script that draws charts in a browser. It comes from vl-convert; the repository has no copy."""

import contextlib
from functools import cache
from importlib.metadata import version

from ..errors import InvalidInput
from ..files import atomic_write, cache_folder


@cache
def vega_bundle() -> bytes:
    """Return the script that sets `window.vegaEmbed`. It takes a second to make, and is cached on disk if possible."""
    try:
        cached = cache_folder() / f"vega-{version('vl-convert-python')}.js"
    except RuntimeError:  # there is no home directory
        return _bundle()
    with contextlib.suppress(OSError):
        return cached.read_bytes()
    script = _bundle()
    with contextlib.suppress(OSError, InvalidInput):
        cached.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(cached) as unfinished:
            unfinished.write_bytes(script)
    return script


def _bundle() -> bytes:
    import vl_convert

    return vl_convert.javascript_bundle().encode()  # type: ignore[call-arg]

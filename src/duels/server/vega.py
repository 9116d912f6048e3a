"""Charts as pictures, and the script that draws them in a browser, which comes from vl-convert."""

import contextlib
from functools import cache
from importlib.metadata import version
from typing import Any

from ..errors import InvalidInput
from ..files import atomic_write, cache_folder


def draw_chart(chart: dict[str, Any], format: str) -> bytes:
    """Return a chart as svg or png. It takes a second and holds Python's lock."""
    import vl_convert

    if format == "png":
        return bytes(vl_convert.vegalite_to_png(chart, scale=2))
    return str(vl_convert.vegalite_to_svg(chart)).encode()


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

"""Charts of a study as pictures, for reports and slides. Drawing one takes a second, so the last ones are kept."""

import threading
from collections import OrderedDict

from fastapi.responses import Response

from ..errors import NotFound
from ..study.study import Study
from .downloads import attachment
from .keys import Key
from .service import Json, Service

PICTURES = {  # charts by name, with what pages call them
    "leaderboard": "Leaderboard",
    "ratings": "Ratings",
    "beats": "Who beats whom",
    "duels": "Who met whom how often",
    "progress": "Answers over time",
}
KINDS = {"svg": "image/svg+xml", "png": "image/png"}
MOST = 50  # pictures that are kept
Which = tuple[int, int, int, str, str, str]  # storage, study, event, title, chart, format

_kept: OrderedDict[Which, bytes] = OrderedDict()
_drawing = threading.Lock()  # one at a time: drawing uses a processor fully


def picture(service: Service, study: Study, name: str, format: str, link: Key | None = None) -> Response:
    """Return a chart as a file to download. Blocks.

    Args:
        service: The application's.
        study: The study.
        name: Of the chart.
        format: svg or png.
        link: The link to results that it is behind: its title takes the place of the study's name.

    Raises:
        NotFound: If the chart has nothing to show.
    """
    title = study.name if link is None or not link.name else link.name
    with _drawing:
        which = (id(service.storage), study.id, study.history().seq, title, name, format)
        drawn = _kept.pop(which, None) or _drawn(service, study, title, name, format)
        _kept[which] = drawn
        if len(_kept) > MOST:
            _kept.popitem(last=False)
    named, otherwise = (title, "study") if link is None else (link.name, "results")
    headers = attachment(named, f"{name}.{format}", otherwise) | {"Cache-Control": "no-store"}
    return Response(drawn, media_type=KINDS[format], headers=headers)


def _drawn(service: Service, study: Study, title: str, name: str, format: str) -> bytes:
    import vl_convert

    chart = _ratings(service, study, title) if name == "ratings" else _chart(service, study, title, name)
    if chart is None:
        raise NotFound(f"the chart {name!r} has nothing to show yet: wait for answers")
    if format == "png":
        return bytes(vl_convert.vegalite_to_png(chart, scale=2))
    return str(vl_convert.vegalite_to_svg(chart)).encode()


def _chart(service: Service, study: Study, title: str, name: str) -> Json | None:
    """A chart of the board; None if it has nothing to show."""
    from ..study.board_charts import charts_of

    board = service.board(study)
    if title == study.name:
        return service.charts(board).get(name)
    return charts_of(board | {"study": board["study"] | {"name": title}}, name).get(name)


def _ratings(service: Service, study: Study, title: str) -> Json | None:
    """The chart of the ratings, in the order of the leaderboard; None if there are none."""
    from ..figures import ratings
    from ..study.board_charts import about_study
    from ..study.leaderboard import rating_table

    look = study.look()
    tally = look.tally._replace(open=None)
    table = rating_table(tally, look.verdict().named, look.goal.confidence)
    if not len(table):
        return None
    chart = dict(ratings(table).to_dict())
    below = chart["title"]["subtitle"]
    about = about_study(title, service.glance(study)["answers"])
    chart["title"]["subtitle"] = [about, *([below] if isinstance(below, str) else below)]
    chart["description"] = f"{about}. {chart.get('description', '')}"
    return chart

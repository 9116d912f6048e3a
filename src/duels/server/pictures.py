"""Charts of a study as pictures, for reports and slides.

Drawing one takes a second, in a child process, so the last ones are kept.
"""

from fastapi.responses import Response

from ..errors import NotFound
from ..study import worker
from ..study.study import Study
from .computed import Computed
from .downloads import attachment
from .errors import Refused
from .keys import Key
from .service import Json, Service
from .vega import draw_chart

PICTURES = {  # charts by name, with what pages call them
    "leaderboard": "Leaderboard",
    "ratings": "Ratings",
    "beats": "Who beats whom",
    "duels": "Who met whom how often",
    "progress": "Answers over time",
}
KINDS = {"svg": "image/svg+xml", "png": "image/png"}
KEPT = 50_000_000  # bytes of pictures

_kept: Computed[bytes] = Computed(KEPT, len)


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
    which = (id(service.storage), study.id, title, name, format)
    drawn = _kept.get(which, lambda: _draw(service, study, title, name, format), lambda: study.history().seq)
    named, otherwise = (title, "study") if link is None else (link.name, "results")
    headers = attachment(named, f"{name}.{format}", otherwise) | {"Cache-Control": "no-store"}
    return Response(drawn, media_type=KINDS[format], headers=headers)


def _draw(service: Service, study: Study, title: str, name: str, format: str) -> bytes:
    from ..figures.fonts import with_font

    chart = _ratings(service, study, title) if name == "ratings" else _chart(service, study, title, name)
    if chart is None:
        raise NotFound(f"the chart {name!r} has nothing to show yet: wait for answers")
    try:
        drawn: bytes = worker.PICTURES.run(draw_chart, chart, format)
    except worker.ChildFailed:
        raise Refused(429, "the picture took too long to draw: try again later", retry=10) from None
    return with_font(drawn.decode()).encode() if format == "svg" else drawn


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

"""What the page of a study's voters shows."""

from urllib.parse import urlencode

from ..study.voters import SORTS, order_voters, remarks_of, rows_of, summary_of
from .caps import crowds
from .service import AnyStudy, Json, Service

EACH = 50  # voters on a page
HEADERS = {  # column: its title, and what comes first if one sorts by it
    "voter": ("Voter", "by name"),
    "answers": ("Answers", "most answers first"),
    "agreement": ("Agreement", "least agreement first"),
    "left": ("Left side", "most uneven first"),
    "pace": ("Pace", "fastest first"),
    "last": ("Last answer", "latest first"),
}
LARGEST = ("answers", "left", "last")  # columns whose largest values come first


def show_voters(service: Service, study: AnyStudy, search: str, sort: str, reverse: bool, after: int) -> Json:
    """Return a page of a study's voters, with links to other pages and orders. Blocks."""
    found = service.voters(study)
    sort = sort if sort in SORTS else "answers"
    chosen = order_voters(found, search, sort, reverse)
    after = min(after, max(0, len(chosen) - 1) // EACH * EACH)

    def link(**changed: object) -> str:
        wanted: Json = {"search": search, "sort": sort, "reverse": "1" if reverse else "", "after": after} | changed
        kept = {name: value for name, value in wanted.items() if value and (name, value) != ("sort", "answers")}
        return "?" + urlencode(kept)

    return {
        "summary": summary_of(found),
        "remarks": remarks_of(found),
        "notices": crowds(service.storage, study.id),
        "void": study.history().void,
        "search": search,
        "sort": sort,
        "reverse": reverse,
        "found": len(chosen),
        "voters": rows_of(found, chosen[after : after + EACH]),
        "from_": after + 1,
        "headers": [
            {
                "name": name,
                "title": title,
                "hint": f"{hint}, reversed" if name == sort and not reverse else hint,
                "link": link(sort=name, reverse="1" if name == sort and not reverse else "", after=0),
                "order": ("descending" if (name in LARGEST) != reverse else "ascending") if name == sort else None,
            }
            for name, (title, hint) in HEADERS.items()
            if name != "agreement" or not study.row.is_tuning  # each question has settings of its own
        ],
        "earlier": link(after=after - EACH) if after else None,
        "later": link(after=after + EACH) if after + EACH < len(chosen) else None,
    }

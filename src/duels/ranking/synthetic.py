"""Synthetic collections that resemble LETOR 3.0's NP2004: named page finding with 64 features.

They are for tests, examples and the paper's experiment when no data set is available. `docs/ranking/synthetic.md`
measures which properties they share with NP2004.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..checks import check_int
from ..errors import InvalidInput
from .collection import Collection
from .collection import load as load_collection
from .collection import save as save_collection
from .synthetic_features import (
    Field,
    Links,
    bm25,
    field_features,
    hits,
    match_features,
    normalize,
    propagate,
    reverse,
    round_scores,
    sitemap,
    split_scores,
)
from .synthetic_pool import (
    ANCHOR,
    BODY,
    EXTRACTED,
    TITLE,
    URL,
    WHOLE,
    Pages,
    Terms,
    draw_links,
    draw_pool,
    field_of,
    parents,
    whole,
)

OWN_SHARE = 0.8  # the share of a page's propagated score that is its own, if links are weighted
OWN_SHARE_UNIFORM = 0.1  # the same if they are not


class Feature(NamedTuple):
    """A feature of the synthetic collections."""

    number: int  # from 1, as in LETOR's files
    name: str
    description: str


def _list_features() -> Iterator[tuple[str, str]]:
    families = (
        ("tf", "occurrences of the query's terms"),
        ("idf", "inverse document frequencies of the query's terms, summed: the same for all documents of a query"),
        ("tfidf", "tf times idf, summed over the query's terms"),
        ("length", "words"),
        ("bm25", "BM25"),
        ("lm-abs", "language model, absolute discounting"),
        ("lm-dir", "language model, Dirichlet smoothing"),
        ("lm-jm", "language model, Jelinek-Mercer smoothing"),
    )
    fields = ("body", "anchor", "title", "url", "whole")
    for family, description in families:
        yield from ((f"{family}-{field}", f"{description}; {field}") for field in fields)
    yield "sitemap-term", "BM25 of the whole document, its counts shared along the site map"
    yield "sitemap-score", "BM25 of the whole document, shared along the site map"
    for kind, description in (("score", "BM25 of the whole document"), ("term", "BM25 of counts")):
        yield f"link-{kind}-in", f"{description}, flowing along links, more to better matches"
        yield f"link-{kind}-out", f"{description}, flowing back along links, more from better matches"
        yield f"link-{kind}-out-uniform", f"{description}, flowing back evenly along links"
    yield "hits-authority", "HITS authority among the query's linked pages"
    yield "hits-hub", "HITS hub among the query's linked pages"
    yield "pagerank", "importance of the page from the links of the whole collection"
    yield "hostrank", "importance of the host, less for each slash"
    yield "topical-pagerank", "PageRank weighted by topic"
    yield "topical-hits-authority", "HITS authority, links weighted by topic"
    yield "topical-hits-hub", "HITS hub, links weighted by topic"
    yield "inlinks", "links to the page from the whole collection"
    yield "outlinks", "links from the page"
    yield "url-slashes", "slashes in the URL"
    yield "url-characters", "length of the URL"
    yield "children", "pages below it in its site"
    for family, description in families[4:]:
        yield f"{family}-extracted", f"{description}; title extracted from the body"


FEATURES: tuple[Feature, ...] = tuple(Feature(k, *named) for k, named in enumerate(_list_features(), 1))


def synthetic_collection(
    *,
    queries: int = 75,
    documents: int = 1000,
    features: int = 64,
    relevant: int | Sequence[float] = 1,
    seed: int = 0,
    name: str = "synthetic",
) -> Collection:
    """Draw a collection from a model of named page finding.

    Args:
        queries: The number of queries.
        documents: The number of documents per query.
        features: The number of features: the first ones of `FEATURES`.
        relevant: The number of relevant documents per query, or the probabilities of 0, 1, 2, … of them, such as
            `(0.05, 0.9, 0.05)`.
        seed: The seed. A collection with more queries contains the same first queries.
        name: The name of the collection.

    Raises:
        InvalidInput: If an argument is out of range.
    """
    queries = check_int("queries", queries, 1)
    documents = check_int("documents", documents, 2)
    features = check_int("features", features, 1, len(FEATURES))
    chances = _chances(relevant, documents)
    seed = check_int("seed", seed, 0)
    tables, grades = [], []
    for query in range(queries):
        rng = np.random.default_rng(np.random.SeedSequence([seed, query]))
        number = int(np.searchsorted(np.cumsum(chances)[:-1], rng.random(), side="right"))
        terms, pages = draw_pool(documents, number, rng)
        tables.append(normalize(_features(terms, pages, rng)[:features]))
        grades.append(pages.relevant.astype(np.int64))
    return Collection(
        name=name,
        features=np.concatenate(tables),
        grades=np.concatenate(grades),
        offsets=documents * np.arange(queries + 1),
        queries=tuple(f"S-{query:03d}" for query in range(1, queries + 1)),
        documents=tuple(f"S-{q:03d}-{d:04d}" for q in range(1, queries + 1) for d in range(1, documents + 1)),
        feature_ids=tuple(feature.number for feature in FEATURES[:features]),
        feature_names=tuple(feature.name for feature in FEATURES[:features]),
    )


def _features(terms: Terms, pages: Pages, rng: np.random.Generator) -> list[np.ndarray]:
    """The columns of `FEATURES`, before normalization."""
    document = field_of(WHOLE, terms, whole(pages))
    texts = ((BODY, pages.body), (ANCHOR, pages.anchor), (TITLE, pages.title), (URL, pages.url))
    by_field = [field_features(field_of(style, terms, text)) for style, text in texts] + [field_features(document)]
    links = draw_links(pages, bm25(document), rng)
    return [
        *(column for family in zip(*by_field) for column in family),
        *_sitemap_features(document, parents(pages)),
        *_link_features(document, links),
        *_graph_features(pages, links, rng),
        pages.inlinks,
        pages.outlinks,
        pages.slashes,
        pages.characters,
        pages.children,
        *match_features(field_of(EXTRACTED, terms, pages.extracted)),
    ]


def _sitemap_features(document: Field, above: np.ndarray) -> list[np.ndarray]:
    counts = np.stack([sitemap(row, above) for row in document.counts])
    counts /= sitemap(np.ones(1), np.full(1, -1))  # a page without children keeps its counts
    return [bm25(document._replace(counts=counts)), sitemap(bm25(document), above)]


def _link_features(document: Field, links: Links) -> list[np.ndarray]:
    """Scores and term counts that flow along links; 0 for pages without links."""
    scores = bm25(document)
    linked = np.zeros(links.documents)
    linked[links.sources] = linked[links.targets] = 1
    better = split_scores(scores[links.targets], links)
    back = reverse(links)
    even = split_scores(np.ones(len(links.sources)), back)
    flows = ((links, better, OWN_SHARE), (back, better, OWN_SHARE), (back, even, OWN_SHARE_UNIFORM))
    by_score = [round_scores(propagate(scores * linked, *flow)) for flow in flows]
    by_term = [np.stack([propagate(row * linked, *flow) for row in document.counts]) for flow in flows]
    return by_score + [bm25(document._replace(counts=counts)) for counts in by_term]


def _graph_features(pages: Pages, links: Links, rng: np.random.Generator) -> list[np.ndarray]:
    host_fame = rng.standard_normal(int(pages.host.max()) + 1)[pages.host]
    pagerank = np.round(np.exp(np.log1p(pages.inlinks) + 0.8 * pages.fame + 0.5 * host_fame), 1)
    hostrank = np.exp(0.7 * host_fame - 0.5 * pages.slashes)
    topic = 1 / (1 + np.exp(-pages.topicality))
    authority, hub = hits(links, np.ones(len(links.sources)))
    on_topic = hits(links, topic[links.sources] * topic[links.targets])
    topical_pagerank = round_scores(pagerank * topic, decimals=3)
    return [
        round_scores(authority),
        round_scores(hub),
        pagerank,
        hostrank,
        topical_pagerank,
        *map(round_scores, on_topic),
    ]


def _chances(relevant: int | Sequence[float], documents: int) -> np.ndarray:
    """The probabilities of 0, 1, 2, … relevant documents."""
    if not isinstance(relevant, Sequence) or isinstance(relevant, str):
        chances = np.zeros(check_int("relevant", relevant, 0, documents) + 1)
        chances[-1] = 1.0
        return chances
    try:
        chances = np.array(relevant, dtype=np.float64)
    except (TypeError, ValueError):
        chances = np.full(1, np.nan)
    if chances.ndim != 1 or not (chances >= 0).all() or abs(chances.sum() - 1) > 1e-9:
        raise InvalidInput(f"relevant = {relevant!r}: expected a number, or probabilities of 0, 1, 2, … that sum to 1")
    if len(chances) > documents + 1:
        raise InvalidInput(
            f"relevant has {len(chances)} probabilities: expected at most {documents + 1}, one more than documents"
        )
    return chances


def synthetic_letor(path: str | Path, **options: Any) -> Collection:
    """Draw a synthetic collection, write it to a LETOR file and read it back.

    Args:
        path: The file.
        **options: Arguments of `synthetic_collection`.

    Returns:
        The collection as read from the file, with the names of the features.
    """
    made = synthetic_collection(**options)
    save_collection(made, path)
    read = load_collection(path, cache=False, progress=False, name=made.name)
    return replace(read, feature_names=made.feature_names)

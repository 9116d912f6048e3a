"""The formulas behind a synthetic collection's features: term weights, language models, links, normalization.

Plain functions of arrays; `synthetic_pool.py` draws the documents. Term counts are (M, n), with one row per query term
and one column per document, so sums over terms add rows in the same order on every machine.

The documents of a synthetic query: what they are about, their texts as term counts, their sites and links.

A pool is made like those of LETOR: candidates come from a larger collection, and the best by BM25 of the whole document
are kept. A page's topic determines its texts; a page that is named by the query has other texts and links.

Synthetic collections that resemble LETOR 3.0's NP2004: named page finding with 64 features.

They are for tests, examples and the paper's experiment when no data set is available. `docs/rankers/synthetic.md`
measures which properties they share with NP2004.
"""

import math
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

K1, B = 1.2, 0.75  # the usual parameters of BM25
DISCOUNT = 0.7  # δ of absolute discounting
PRIOR = 2000.0  # μ of Dirichlet smoothing: words of the collection's model added to each document
SMOOTHING = 0.1  # λ of Jelinek-Mercer smoothing, the share of the collection's model
HEAPS = (5.0, 0.65)  # a text of L words has about 5 · L^0.65 distinct ones, at most L
SITEMAP_SHARE = 0.9  # how much more weight a page's own evidence has than its children's
LINK_ROUNDS = 20


class Field(NamedTuple):
    """The occurrences of a query's terms in one field (body, title, …) of n documents."""

    counts: np.ndarray  # (M, n) float64: occurrences of each term in each document
    lengths: np.ndarray  # (n,) float64: words in the field
    idf: np.ndarray  # (M,) float64
    rates: np.ndarray  # (M,) float64: each term's share of the whole collection's words in this field
    mean_length: float  # over the whole collection


class Links(NamedTuple):
    """Hyperlinks between n documents: link k runs from sources[k] to targets[k]."""

    sources: np.ndarray  # (E,) int64
    targets: np.ndarray  # (E,) int64
    documents: int


def idf(frequencies: np.ndarray, collection: int) -> np.ndarray:
    """The weight of terms that occur in `frequencies` of `collection` documents; always above 0."""
    return np.log1p((collection - frequencies + 0.5) / (frequencies + 0.5))


def bm25(field: Field) -> np.ndarray:
    norm = K1 * (1 - B + B * field.lengths / field.mean_length)
    return np.asarray(np.sum(field.idf[:, None] * field.counts * (K1 + 1) / (field.counts + norm), axis=0))


def absolute_discounting(field: Field) -> np.ndarray:
    """Log-likelihood of the query: δ of each word's count goes to the collection's model."""
    lengths = _lengths_of_matches(field)
    words = np.maximum(lengths, 1)
    distinct = np.minimum(HEAPS[0] * words ** HEAPS[1], words)
    given = np.where(lengths > 0, DISCOUNT * distinct / words, 1.0)
    return _log_likelihood(np.maximum(field.counts - DISCOUNT, 0) / words + given * field.rates[:, None])


def dirichlet(field: Field) -> np.ndarray:
    """Log-likelihood of the query with μ words of the collection's model added to the document."""
    lengths = _lengths_of_matches(field)
    return _log_likelihood((field.counts + PRIOR * field.rates[:, None]) / (lengths + PRIOR))


def jelinek_mercer(field: Field) -> np.ndarray:
    """Log-likelihood of the query under a fixed mixture of the document's and the collection's model."""
    own = field.counts / np.maximum(field.lengths, 1)
    return _log_likelihood((1 - SMOOTHING) * own + SMOOTHING * field.rates[:, None])


def match_features(field: Field) -> list[np.ndarray]:
    return [bm25(field), absolute_discounting(field), dirichlet(field), jelinek_mercer(field)]


def field_features(field: Field) -> list[np.ndarray]:
    """A field's eight features in LETOR's order: tf, idf, tf·idf, length, BM25 and three language models."""
    summed_idf = np.full(len(field.lengths), math.fsum(field.idf))
    weighted = np.sum(field.counts * field.idf[:, None], axis=0)
    return [np.sum(field.counts, axis=0), summed_idf, weighted, field.lengths, *match_features(field)]


def _log_likelihood(model: np.ndarray) -> np.ndarray:
    return np.asarray(np.sum(np.log(model), axis=0))


def _lengths_of_matches(field: Field) -> np.ndarray:
    """(n,) lengths; 0 for texts without any of the terms: they are in no posting list and all score the same."""
    return np.where(field.counts.any(axis=0), field.lengths, 0.0)


def sitemap(values: np.ndarray, parents: np.ndarray) -> np.ndarray:
    """Each page's value plus a little of its children's mean; `parents` is −1 for a page without one."""
    below = np.flatnonzero(parents >= 0)
    total = np.bincount(parents[below], weights=values[below], minlength=len(values))
    number = np.bincount(parents[below], minlength=len(values))
    return (1 + SITEMAP_SHARE) * values + (1 - SITEMAP_SHARE) * total / np.maximum(number, 1)


def reverse(links: Links) -> Links:
    return Links(links.targets, links.sources, links.documents)


def split_scores(weights: np.ndarray, links: Links) -> np.ndarray:
    """(E,) the share of its source's value that each link carries, in proportion to the links' weights."""
    total = np.bincount(links.sources, weights=weights, minlength=links.documents)
    total = np.maximum(total, 1e-12)  # a source may link only to pages of score 0
    return np.asarray(weights / total[links.sources])


def propagate(scores: np.ndarray, links: Links, carried: np.ndarray, own: float) -> np.ndarray:
    """Propagate scores along links: the fraction `own` of a page's score is its own, the rest arrives along links."""
    values = scores
    for _ in range(LINK_ROUNDS):
        values = own * scores + (1 - own) * _sum_arriving(values, links, carried)
    return values


def hits(links: Links, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kleinberg's authority and hub scores on weighted links, scaled to a maximum of 1."""
    authorities = hubs = np.ones(links.documents)
    for _ in range(LINK_ROUNDS):
        authorities = _scale(_sum_arriving(hubs, links, weights))
        hubs = _scale(_sum_arriving(authorities, reverse(links), weights))
    return authorities, hubs


def round_scores(scores: np.ndarray, decimals: int = 4) -> np.ndarray:
    """Scores as fractions of their sum with few decimals, as link analysis stores them: many pages become equal."""
    return np.round(scores / max(math.fsum(scores), 1e-12), decimals)


def _sum_arriving(values: np.ndarray, links: Links, carried: np.ndarray) -> np.ndarray:
    return np.bincount(links.targets, weights=values[links.sources] * carried, minlength=links.documents)


def _scale(values: np.ndarray) -> np.ndarray:
    return np.asarray(values / max(values.max(), 1e-12))


def normalize(columns: list[np.ndarray]) -> np.ndarray:
    """(n, F): each column stretched to 0 … 1 and rounded to LETOR's six decimals; a constant column becomes 0."""
    table = np.stack(columns, axis=1)
    low, high = table.min(axis=0), table.max(axis=0)
    return np.asarray(np.round((table - low) / np.where(high > low, high - low, 1.0), 6))


COLLECTION = 1_000_000  # documents of the imagined whole collection, for document frequencies
CANDIDATES = 4  # candidates per document that is kept
HOSTS = 0.35  # hosts per document that is kept
MIRRORS = 0.035  # mean share of pages that are complete copies of others; it varies a lot between queries
REPRINTS = 0.10  # share of pages with the text of another one, but their own address and links
MOST_COPIES = 0.4  # in one query
GENERALITY = 0.5  # how much more often a text has a term that is e times as frequent in the collection
NAMED_SPREAD = 0.6  # the spread of term frequencies in fields that name their page (log-odds)

Text = tuple[np.ndarray, np.ndarray]  # (M, n) counts of each query term, (n,) lengths in words; both float64


class Style(NamedTuple):
    """The model of a field's text. Levels are log-odds that a slot has a term; for the body, log-rates per word."""

    level: float  # of a page of average topicality
    slope: float  # added per unit of topicality
    habit: float  # standard deviation by document: a query's terms occur together
    shared: float  # the share of the deviation by document and term that all fields of the document have in common
    burst: float  # standard deviation by document and term: a text has some of a query's terms and not others
    named: float  # the level in a field that names its page
    naming: float  # how often this field of a named page names it
    rarity: float  # documents with a term in this field, per document with the term in its body
    mean_length: float  # over the whole collection


BODY = Style(-6.8, 0.5, 0.4, 0.3, 1.5, -3.6, 0.88, 1.0, 500.0)
ANCHOR = Style(-5.2, 0.9, 0.8, 0.9, 1.5, 0.2, 0.80, 0.12, 6.0)
TITLE = Style(-4.4, 0.9, 0.8, 0.9, 1.5, 1.8, 0.76, 0.10, 5.0)
URL = Style(-5.0, 0.6, 1.0, 0.6, 1.2, 0.0, 0.40, 0.06, 5.0)
EXTRACTED = Style(-4.4, 0.6, 1.0, 0.5, 1.2, 1.8, 0.42, 0.10, 6.0)  # the title as extracted from the body
WHOLE = BODY._replace(rarity=1.02, mean_length=516.0)  # drawn field by field, counted together
LARGEST_RATE = 0.15  # no word is more than this share of a body


class Terms(NamedTuple):
    """A query's terms."""

    frequencies: np.ndarray  # (M,) float64: documents of the whole collection that have the term in their body
    generality: np.ndarray  # (M,) float64: log-frequency, less the query's mean


class Pages(NamedTuple):
    """Documents before any feature is computed."""

    relevant: np.ndarray  # (n,) bool: the page that the query names
    topicality: np.ndarray  # (n,) float64, standard normal over candidates
    fame: np.ndarray  # (n,) float64, standard normal over candidates: drives links
    body: Text
    title: Text
    extracted: Text
    anchor: Text
    url: Text
    inlinks: np.ndarray  # (n,) float64: links from the whole collection
    outlinks: np.ndarray  # (n,) float64
    children: np.ndarray  # (n,) float64: pages below it in its site
    host: np.ndarray  # (n,) int64
    slashes: np.ndarray  # (n,) float64
    characters: np.ndarray  # (n,) float64: of the URL


def draw_pool(documents: int, relevant: int, rng: np.random.Generator) -> tuple[Terms, Pages]:
    """A query's terms, and its `documents` pages in random order."""
    terms = draw_terms(rng)
    drawn = _with_copies(draw_pages(terms, documents, relevant, rng), rng)
    score = bm25(field_of(WHOLE, terms, whole(drawn)))
    score[drawn.relevant] = np.inf  # judged pages are always kept
    kept = np.argsort(-score, kind="stable")[:documents]
    return terms, _take_pages(drawn, rng.permutation(kept))


def draw_terms(rng: np.random.Generator) -> Terms:
    """Two to six terms, found in 0.03 % to 10 % of the collection."""
    number = 2 + min(int(rng.poisson(1.6)), 4)
    log_share = rng.uniform(np.log(3e-4), np.log(0.1), number)
    return Terms(np.round(COLLECTION * np.exp(log_share)), log_share - log_share.mean())


def draw_pages(terms: Terms, documents: int, relevant: int, rng: np.random.Generator) -> Pages:
    """Candidates for a pool, the relevant ones last. Named pages are better linked and nearer their site's root."""
    n = CANDIDATES * documents + relevant
    named = np.arange(n) >= n - relevant
    topicality = np.where(named, rng.normal(2.0, 0.6, n), rng.standard_normal(n))
    affinity = rng.standard_normal((len(terms.frequencies), n))  # each page's affinity to each term, besides its topic
    fame = np.where(named, rng.normal(1.0, 1.6, n), rng.standard_normal(n))
    slashes = 1.0 + rng.poisson(np.where(named, 1.3, 2.2))
    links = -0.2 + 1.1 * fame + 0.5 * rng.standard_normal(n) + rng.exponential(1.0, n) - 0.15 * slashes
    inlinks = np.floor(np.exp(links)) + (rng.random(n) < 0.9)
    words = np.floor(20 + np.exp(rng.normal(np.where(named, 6.0, 5.8), np.where(named, 1.4, 1.15))))
    anchors = np.where((rng.random(n) < 0.05) | (inlinks == 0), 0, 1 + rng.poisson(0.9 * np.log1p(inlinks)))

    def short(style: Style, slots: np.ndarray, words: np.ndarray) -> Text:
        return _short_text(_levels(style, terms, topicality, affinity, named, rng), slots, words, rng)

    title = short(TITLE, rng.random(n) < 0.97, 1 + rng.poisson(rng.gamma(2.0, 2.0, n)))
    other = short(EXTRACTED, rng.random(n) < 0.7, 1 + rng.poisson(4.0, n))
    found = rng.random(n) < 0.4
    return Pages(
        relevant=named,
        topicality=topicality,
        fame=fame,
        body=_body(_levels(BODY, terms, topicality, affinity, named, rng), words, rng),
        title=title,
        extracted=(np.where(found, title[0], other[0]), np.where(found, title[1], other[1])),
        anchor=short(ANCHOR, anchors, 1 + rng.poisson(1.6 * anchors)),
        url=short(URL, np.ones(n), 2 + slashes + rng.poisson(0.8, n)),
        inlinks=inlinks,
        outlinks=rng.poisson(rng.gamma(0.8, np.where(named, 25.0, 17.5))).astype(np.float64),
        children=np.where(rng.random(n) < 0.07, np.floor(np.exp(rng.normal(1.5, 1.3, n))), 0.0),
        host=np.floor(HOSTS * documents * rng.random(n) ** 3).astype(np.int64),  # few large sites, many small ones
        slashes=slashes,
        characters=np.floor(12 + 7 * slashes + rng.gamma(2.0, 9.0, n)),
    )


def draw_links(pages: Pages, scores: np.ndarray, rng: np.random.Generator) -> Links:
    """Links among the pages that link analysis starts from: about a third, more of them among the best by `scores`."""
    n = len(scores)
    standing = np.empty(n)  # from 0, the best, to 1
    standing[np.argsort(-scores, kind="stable")] = np.arange(n) / n
    chance = 1.8 * rng.beta(1.6, 3.2) * np.exp(-1.3 * standing)
    linked = np.log1p(pages.inlinks + pages.outlinks)
    chance = np.where(pages.relevant, 0.97, chance * linked / max(linked.mean(), 1e-12))
    root = np.flatnonzero(rng.random(n) < chance)
    if len(root) == 0:
        return Links(root, root, n)
    sources = np.repeat(root, 1 + rng.poisson(0.2 * np.minimum(pages.outlinks[root], 60)))
    pull = np.cumsum(np.exp(0.3 * pages.fame[root] + 0.2 * pages.topicality[root]))
    targets = root[np.searchsorted(pull[:-1], rng.random(len(sources)) * pull[-1], side="right")]
    others = sources != targets
    return Links(sources[others], targets[others], n)


def parents(pages: Pages) -> np.ndarray:
    """(n,) int64: the page above each one in its site, or −1. The last of several index pages has the children."""
    above = np.full(len(pages.host), -1)
    for page in np.flatnonzero(pages.children > 0):
        below = (pages.host == pages.host[page]) & (pages.slashes == pages.slashes[page] + 1)
        above[below] = page
    return above


def field_of(style: Style, terms: Terms, text: Text) -> Field:
    """A drawn text with the collection statistics that the formulas need."""
    frequencies = np.maximum(terms.frequencies * style.rarity, 1)
    rates = 1.5 * frequencies / (COLLECTION * style.mean_length)  # a text that has a term has it about 1.5 times
    return Field(*text, idf(frequencies, COLLECTION), rates, style.mean_length)


def whole(pages: Pages) -> Text:
    """Body, anchor, title and URL as one text."""
    parts = (pages.body, pages.anchor, pages.title, pages.url)
    return np.sum([counts for counts, _ in parts], axis=0), np.sum([lengths for _, lengths in parts], axis=0)


def _levels(
    style: Style,
    terms: Terms,
    topicality: np.ndarray,
    affinity: np.ndarray,
    named: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """(M, n): the log-odds (or log-rates) with which each document's field has each term."""
    n = len(topicality)
    document = style.level + style.slope * topicality + style.habit * rng.standard_normal(n)
    noise = style.shared * affinity + np.sqrt(1 - style.shared**2) * rng.standard_normal(affinity.shape)
    levels = document + GENERALITY * terms.generality[:, None] + style.burst * noise
    says_name = named & (rng.random(n) < style.naming)
    return np.asarray(np.where(says_name, style.named + NAMED_SPREAD * noise, levels))


def _body(levels: np.ndarray, words: np.ndarray, rng: np.random.Generator) -> Text:
    """Poisson counts with normal log-rates: overdispersed, like words in texts."""
    counts = rng.poisson(words * np.minimum(np.exp(levels), LARGEST_RATE)).astype(np.float64)
    return counts, np.maximum(words, counts.sum(axis=0))


def _short_text(levels: np.ndarray, slots: np.ndarray, words: np.ndarray, rng: np.random.Generator) -> Text:
    """Each slot (a title, an anchor's text) has each term or not; a field without slots is empty."""
    counts = rng.binomial(slots.astype(np.int64), 1 / (1 + np.exp(-levels))).astype(np.float64)
    return counts, np.maximum(counts.sum(axis=0), np.where(slots > 0, words, 0.0))


def _with_copies(pages: Pages, rng: np.random.Generator) -> Pages:
    """Pages of which some reprint the text of another one or mirror it; named pages are not copied."""
    text = _take_pages(pages, _draw_copies(pages.relevant, REPRINTS * rng.gamma(1.0), rng))
    pages = pages._replace(topicality=text.topicality, body=text.body, title=text.title, extracted=text.extracted)
    return _take_pages(pages, _draw_copies(pages.relevant, 2 * MIRRORS * rng.gamma(0.5), rng))


def _draw_copies(relevant: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """(n,) int64: the page that each one copies; most pages are their own."""
    origin = np.arange(len(relevant))
    copies = np.flatnonzero((rng.random(len(relevant)) < min(share, MOST_COPIES)) & ~relevant)
    origin[copies] = rng.choice(np.flatnonzero(~relevant), len(copies))
    return origin


def _take_pages(pages: Pages, index: np.ndarray) -> Pages:
    return Pages._make(tuple(p[..., index] for p in v) if isinstance(v, tuple) else v[index] for v in pages)


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

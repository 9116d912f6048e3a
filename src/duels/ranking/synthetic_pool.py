"""The documents of a synthetic query: what they are about, their texts as term counts, their sites and links.

A pool is made like those of LETOR: candidates come from a larger collection, and the best by BM25 of the whole document
are kept. A page's topic determines its texts; a page that is named by the query has other texts and links.
"""

from typing import NamedTuple

import numpy as np

from .synthetic_features import Field, Links, bm25, idf

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

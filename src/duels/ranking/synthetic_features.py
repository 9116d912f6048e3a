"""The formulas behind a synthetic collection's features: term weights, language models, links, normalization.

Plain functions of arrays; `synthetic_pool.py` draws the documents. Term counts are (M, n), with one row per query term
and one column per document, so sums over terms add rows in the same order on every machine.
"""

import math
from typing import NamedTuple

import numpy as np

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

"""The papers' listings, transcribed literally with dense arrays and no thought of speed: a file for each policy.

`ORACLES` play `horizon` steps on a matrix with the two generators of a run and return their history: the policy must
make the same duels. The draw rules are those of docs/concepts.md: one draw for a choice among several equals in
ascending order, one draw for an outcome. `CHOICES` choose a pair from one state with the probabilities that the
policy's choices must have too, which draws in another way.
"""

from functools import partial

from . import (
    borda_ucb,
    btm,
    ccb,
    dts,
    dts_plus,
    ecw_rmed,
    interleaved_filter,
    kl_rucb,
    merge_dts,
    merge_rucb,
    multisbm,
    random,
    rcs,
    rmed1,
    rucb,
    savage,
    scb,
    self_sparring,
    sparring,
    verdict,
    winner_stays,
)

ORACLES = {
    "verdict": verdict.play,
    "rucb": rucb.play,
    "kl_rucb": kl_rucb.play,
    "rmed1": partial(rmed1.play, version=1),
    "rmed2": partial(rmed1.play, version=2),
    "rmed2fh": partial(rmed1.play, version="2FH"),
    "merge_rucb": merge_rucb.play,
    "merge_dts": merge_dts.play,
    "savage": savage.play,
    "btm": btm.play,
    "interleaved_filter": interleaved_filter.play,
    "ccb": ccb.play,
    "scb": scb.play,
    "ecw_rmed": ecw_rmed.play,
    "borda_ucb": borda_ucb.play,
    "sparring": sparring.play,
    "self_sparring": self_sparring.play,
    "multisbm": multisbm.play,
    "winner_stays": winner_stays.play,
    "random": random.play,
}
CHOICES = {"rcs": rcs.chooser, "dts": dts.chooser, "dts_plus": dts_plus.chooser}

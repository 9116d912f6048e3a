"""BoTorch's analytic EUBO as a policy for `continuous.py`: one line of JSON per duel, in and out.

It runs in an environment of its own, with torch and botorch and without duels. The settings are those of BoTorch's
tutorial on preference optimization: PairwiseGP with its default priors and Laplace's method, fitted anew for each duel;
AnalyticExpectedUtilityOfBestOption, 3 restarts, 512 raw samples.
"""

import json
import sys
import time
import warnings

RESTARTS, RAW_SAMPLES = 3, 512


def main():
    import torch
    from botorch.acquisition import PosteriorMean
    from botorch.acquisition.preference import AnalyticExpectedUtilityOfBestOption
    from botorch.fit import fit_gpytorch_mll
    from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
    from botorch.optim import optimize_acqf

    torch.set_default_dtype(torch.double)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        asked = json.loads(line)
        torch.manual_seed(asked["seed"])
        points = torch.tensor(asked["left"] + asked["right"])
        count = len(asked["left"])
        pairs = [(k, k + count) if won else (k + count, k) for k, won in enumerate(asked["outcome"])]
        cube = torch.stack([torch.zeros(points.shape[1]), torch.ones(points.shape[1])])
        start = time.perf_counter()
        model = PairwiseGP(points, torch.tensor(pairs))
        fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
        fitted = time.perf_counter()
        if asked["what"] == "ask":
            chosen = AnalyticExpectedUtilityOfBestOption(pref_model=model)
            found, _ = optimize_acqf(chosen, cube, q=2, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES)
        else:
            found, _ = optimize_acqf(PosteriorMean(model), cube, q=1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES)
        seconds = time.perf_counter() - start
        print(json.dumps({"points": found.tolist(), "seconds": seconds, "fit": fitted - start}), flush=True)


if __name__ == "__main__":
    main()

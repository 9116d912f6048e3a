"""The bodies of requests and responses about studies that tune parameters."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from .schemas import Name, RequestBody

Setting = dict[str, Any]  # a value for each parameter


class NewTuning(RequestBody):
    name: Name
    space: Annotated[
        dict[str, Any] | Annotated[str, Field(max_length=100_000)],
        Field(
            description="The parameters: `[low, high]`, `[low, high, words]` with `log` and `int`, or a list of "
            "choices, by name; or the same as the text of a TOML file.",
            examples=[{"temperature": [0.0, 1.5], "top_k": [1, 100, "log int"], "style": ["terse", "warm"]}],
        ),
    ]
    template: Annotated[
        str | None, Field(max_length=1 << 20, description="See the route `template`; without one, voters see values.")
    ] = None
    policy: Annotated[
        str | None, Field(max_length=200, description="The policy that chooses the duels, e.g. `gp_rucb`; else `eubo`.")
    ] = None
    confidence: Annotated[float | None, Field(gt=0, lt=1, description="Of the intervals; else 0.95.")] = None
    seed: Annotated[int, Field(ge=0, le=2**62)] = 0
    lease: Annotated[float, Field(gt=0, le=1e9, description="Seconds until an unanswered duel expires.")] = 600.0
    load_if_exists: bool = False


class BestOut(BaseModel):
    """The best setting so far. All numbers are statements of the model, not promises."""

    setting: Setting
    share: Annotated[float, Field(description="The predicted share of wins against the runner-up.")]
    lower: float
    upper: float
    confidence: Annotated[float, Field(description="The level of the interval from `lower` to `upper`.")]
    sure: Annotated[
        float | None,
        Field(description="The probability that it is better than the runner-up; null until a preference is found."),
    ]
    runner_up: Annotated[Setting, Field(description="The best setting that is not near it.")]
    answers: int
    evidence: Annotated[
        float, Field(description="The largest evidence that answers are no coin tosses; a preference is found from 20.")
    ]
    words: str


class SlicesOut(BaseModel):
    best: Setting
    confidence: float
    answers: int
    parameters: list[dict[str, Any]]


class Template(RequestBody):
    html: Annotated[
        str | None,
        Field(max_length=1 << 20, description="A page with `{{ name }}` for values; null shows the values themselves."),
    ]


class TemplateOut(BaseModel):
    html: str | None
    unused: Annotated[list[str], Field(description="Parameters that it does not show.")]
    has_script: Annotated[bool, Field(description="Whether it has a script.")]
    scripts: Annotated[bool, Field(description="Whether scripts run; see the route `scripts`.")]

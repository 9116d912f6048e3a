"""Tables as LaTeX and Markdown: what is escaped, by hand and by readers of both."""

import html
import random
import re

import pytest
from latex_reader import printed, read_latex
from markdown_it import MarkdownIt

import duels
from duels.files import latex_table, latex_text, markdown_table, markdown_text


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("dts_plus", r"dts\_plus"),
        ("50% of $5 & #1 {x}", r"50\% of \$5 \& \#1 \{x\}"),
        (r"a\b", r"a\textbackslash{}b"),  # the braces of the command are not escaped again
        ("~^|", r"\textasciitilde{}\textasciicircum{}\textbar{}"),
        ("<b>", r"\textless{}b\textgreater{}"),
        ("512.3 ± 4.5", r"512.3 $\pm$ 4.5"),
        ("0.1 – 0.2", "0.1 -- 0.2"),
        ("RUCB (α = 0.6)", r"RUCB ($\alpha$ = 0.6)"),
        ("D-TS⁺", "D-TS$^{+}$"),
        ("10²¹¹ and 10⁻⁴", "10$^{211}$ and 10$^{-4}$"),
        ("two\nlines\tand  spaces", "two lines and spaces"),
        ("Zürich", "Zürich"),
        ('a "b"', "a {''}b{''}"),
        ("--all, `x`", r"-{}-all, \textasciigrave{}x\textasciigrave{}"),  # two hyphens would be a dash
        ("''", "'{}'"),
        ("θ → ∞", r"$\theta$ $\to$ $\infty$"),
        ("", ""),
    ],
)
def test_latex_text(text, latex):
    assert latex_text(text) == latex


def test_a_latex_table():
    table = latex_table(["policy", "n & m"], [["a_b", "1,000"], ["[x]", "2"], ["*", "3"]], right=[1])
    assert table.split("\n") == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"policy & n \& m \\",
        r"\midrule",
        r"a\_b & 1,000 \\",
        r"{}[x] & 2 \\",  # \\ followed by [ would read a length
        r"{}* & 3 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert latex_table(["a"], [[""]]).count(r"\\") == 2


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("a|b", r"a\|b"),
        ("_x_ *y* `z`", r"\_x\_ \*y\* \`z\`"),
        ("<b>&amp;", r"\<b\>\&amp;"),
        ("[a](b)", r"\[a\](b)"),
        (r"c:\d", r"c:\\d"),
        ("two\nlines", "two lines"),
        ("D-TS⁺ ± 1", "D-TS⁺ ± 1"),
    ],
)
def test_markdown_text(text, markdown):
    assert markdown_text(text) == markdown
    assert re.sub(r"\\(.)", r"\1", markdown) == " ".join(text.split())  # what a reader sees


SIGNS = "ab1 .,;:!?'\"`^~\\{}[]()<>&%$#_|*+-=/@±−–—…α≤⁺¹é"


def texts():
    """Texts of two to twelve signs, each of which is in some; the generator makes no other ones."""
    draw = random.Random(0)
    made = ["".join(draw.choices(SIGNS, k=draw.randint(2, 12))) for _ in range(400)]
    assert set(SIGNS) <= set("".join(made))
    return [" ".join(text.split()) or "x" for text in made]


def test_latex_prints_what_was_given():
    given = texts()
    for text in given:
        assert printed(latex_text(text)) == text
    kinds, heads, rows = read_latex(latex_table(["a & b", "[c]"], list(zip(given, reversed(given))), right=[1]))
    assert (kinds, heads, rows) == ("lr", ["a & b", "[c]"], [list(row) for row in zip(given, reversed(given))])


@pytest.mark.parametrize("wrong", ["a_b", "50%", "#1", "x^2", "~", "a & b", "$5", "{", r"\LaTeX", "``x''", '"', "a,,b"])
def test_the_reader_of_latex_is_strict(wrong):
    with pytest.raises((AssertionError, KeyError)):
        printed(wrong)


def test_markdown_shows_what_was_given():
    given = texts()
    page = (
        MarkdownIt("commonmark")
        .enable(["table", "strikethrough"])
        .render(markdown_table(["a|b", "n"], zip(given, given)))
    )
    shown = [html.unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", page)]
    assert shown == [text for text in given for _ in range(2)]


def test_a_markdown_table():
    assert markdown_table(["a|b", "n"], [["x", "1"]], right=[1]) == "| a\\|b | n |\n| --- | --: |\n| x | 1 |"


def test_results_as_latex():
    parts = [duels.simulate("cyclic-4", policy, horizon=100, runs=2) for policy in ("rucb:alpha=0.6", "random")]
    results = duels.results.combine(parts)
    rows = results.to_latex().split("\n")[4:-2]
    names = {"random": "Random", "rucb:alpha=0.6": r"RUCB ($\alpha$ = 0.6)"}
    expected = []
    assert results.final()["accuracy"].to_list() == [1.0, 0.5]
    for row in results.final().to_dicts():
        cells = [rf"{row['regret']:,.1f} $\pm$ {row['standard_error']:,.1f}", f"{row['accuracy']:.2f}"]
        if not expected:  # the lowest regret comes first; here that run also has the highest accuracy
            cells = [rf"\textbf{{\boldmath {cell}}}" for cell in cells]
        expected.append(rf"cyclic-4 & {names[row['policy']]} & 100 & 2 & {' & '.join(cells)} \\")
    assert rows == expected
    assert r" & A\&B & " in results.to_latex({"random": "A&B"})
    assert "Four arms & " in results.to_latex({"cyclic-4": "Four arms"})
    with pytest.raises(duels.errors.UnknownName, match="unknown name in labels 'absent'"):
        results.to_latex({"random": "A&B", "absent": "x"})
    lines = results.to_markdown().split("\n")
    assert re.fullmatch(r"\| cyclic-4 \| Random \| 100 \| 2 \| \*\*.* ± .*\*\* \| \*\*1.00\*\* \|", lines[2])
    assert "*" not in lines[3]


def test_what_is_best_is_judged_by_problem_and_time():
    one, other = (duels.simulate("cyclic-4", "random", horizon=horizon, runs=2) for horizon in (50, 100))
    assert "textbf" not in duels.results.combine([one, other]).to_latex()  # nothing to compare
    single = duels.simulate("cyclic-4", "random", horizon=100)
    assert "pm" not in single.to_latex()  # one run has no standard error

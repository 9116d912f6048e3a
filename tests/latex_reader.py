"""A strict reader of LaTeX tables: what LaTeX would print, or an error where it would stop or print something else."""

import re

COMMANDS = {
    **{rf"\{sign}": sign for sign in "{}$&#%_"},
    **{r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\textbar{}": "|"},
    **{r"\textless{}": "<", r"\textgreater{}": ">", r"\textasciigrave{}": "`", r"\dots{}": "…", "{''}": '"'},
}
MATHEMATICS = {r"\pm": "±", "-": "−", r"\frac12": "½", r"\alpha": "α", r"\gamma": "γ", r"\Delta": "Δ", r"\leq": "≤"}
MATHEMATICS |= {r"\geq": "≥", r"\times": "×", r"\cdot": "·", r"\kappa": "κ", r"\mu": "μ", r"\to": "→"}
RAISED = dict(zip("0123456789+-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻"))
TOKEN = re.compile(
    r"\\text[a-z]+\{\}|\\dots\{\}|\\[{}$&#%_]|\{''\}|\{\}|\$(?P<math>[^$]+)\$"
    r"|(?P<dash>---?)|(?P<plain>[^\\{}$&#%_^~`\"<>|])"
)


def printed(cell):
    """The text that LaTeX prints for a cell."""
    bold = re.fullmatch(r"\\textbf\{(?:\\boldmath )?(.*)\}", cell)
    cell = bold[1] if bold else cell
    shown, place = "", 0
    while place < len(cell):
        token = TOKEN.match(cell, place)
        assert token, f"LaTeX does not print {cell[place : place + 20]!r} as it is"
        if token["math"]:
            raised = re.fullmatch(r"\^\{([0-9+-]+)\}", token["math"])
            shown += "".join(RAISED[one] for one in raised[1]) if raised else MATHEMATICS[token["math"]]
        elif token["dash"]:
            shown += {"--": "–", "---": "—"}[token[0]]
        else:
            assert not (token[0] in "'," and cell[place : place + 2] == 2 * token[0]), "two of them are another sign"
            shown += COMMANDS.get(token[0], "" if token[0] == "{}" else token[0])
        place = token.end()
    return shown


def read_latex(text):
    """The kinds of the columns, the headings and the rows of a table."""
    lines = text.rstrip("\n").split("\n")
    begin = re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}", lines[0])
    assert begin, lines[0]
    assert [lines[1], lines[3], *lines[-2:]] == [r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}"]
    rows = []
    for line in [lines[2], *lines[4:-2]]:
        assert line.endswith(r" \\")
        assert line[0] not in "[*", "the line before would read it as its argument"
        cells = re.split(r"(?<!\\) ?& ?", line.removesuffix(r" \\"))
        assert len(cells) == len(begin[1])
        rows.append([printed(cell.strip()) for cell in cells])
    return begin[1], rows[0], rows[1:]

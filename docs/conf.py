"""The documentation: `sphinx-build -W -b html docs docs/_build`. Pages load nothing from other sites."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

from duels import __version__

project = "Duels"
version = release = __version__
project_copyright = "MIT licence"

extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"Duels {__version__}"
html_copy_source = False
html_math_renderer = "mathml"

# Formulas become MathML, which browsers show by themselves; docutils knows these characters as commands only.
COMMANDS = {
    "−": "-",
    "·": r"\cdot ",
    "±": r"\pm ",
    "≤": r"\le ",
    "≥": r"\ge ",
    "≈": r"\approx ",
    "…": r"\ldots ",
    "½": r"\frac{1}{2}",
}


def mathml(tex, block=False):
    return tex2mathml(tex.translate(str.maketrans(COMMANDS)), as_block=block)


def visit_math(writer, node):
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def visit_math_block(writer, node):
    writer.body.append(mathml(node.astext(), block=True))
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))

"""The documentation: `sphinx-build -W -b html docs docs/_build`. Pages load nothing from other sites."""

import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

from duels import __version__

sys.path.insert(0, str(Path(__file__).parent))  # for reference_pages

project = "Duels"
version = release = __version__
project_copyright = "MIT license"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "reference_pages"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

# The reference: docstrings are in Google style.
autosummary_generate = False
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

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
    "⌊": r"\lfloor ",
    "⌋": r"\rfloor ",
    "¼": r"\frac{1}{4}",
    "¾": r"\frac{3}{4}",
}


def mathml(tex, block=False):
    return tex2mathml(tex.translate(str.maketrans(COMMANDS)), as_block=block)


def visit_math(writer, node):
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def visit_math_block(writer, node):
    writer.body.append(mathml(node.astext(), block=True))
    raise nodes.SkipNode


BENCHMARK = re.compile(r"\]\(((?:\.\./)+benchmarks/\w+\.md)(?:#[\w-]+)?\)")


def offer_benchmarks(app, name, source):
    """Offers the reports in benchmarks/ as downloads: they are not pages of the documentation."""
    source[0] = BENCHMARK.sub(r"](path:\1)", source[0])


def setup(app):
    app.connect("source-read", offer_benchmarks)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))


# Arms and settings have a `Policy` each: a bare name in a signature links to one of the two.
suppress_warnings = ["ref.python"]

"""The directive `namespace`: a table of a namespace's public names, then each with its docstring.

Names are found in the code, so that a page needs no list of them: those in `__all__`, else the classes and functions
that the module or a submodule of it defines. Names that are also at the top, such as `duels.simulate`, are documented
there and linked from the page of their namespace.
"""

import importlib
import inspect
import re

from sphinx.util.docutils import SphinxDirective

import duels


def public_names(namespace):
    module = importlib.import_module(namespace)
    if hasattr(module, "__all__"):
        names = module.__all__
    else:
        names = [name for name in dir(module) if name[0] != "_" and _is_defined_in(getattr(module, name), namespace)]
    return [name for name in names if not inspect.ismodule(getattr(module, name)) and name[0] != "_"]


def _is_defined_in(value, namespace):
    home = getattr(value, "__module__", "") or ""
    return (inspect.isclass(value) or inspect.isfunction(value)) and f"{home}.".startswith(f"{namespace}.")


def documented_at(namespace, name):
    """The full name under which the reference documents a name."""
    value = getattr(importlib.import_module(namespace), name)
    if namespace != "duels" and name in duels.__all__ and getattr(duels, name) is value:
        return f"duels.{name}"
    return f"{namespace}.{name}"


def _directive(value):
    if inspect.isclass(value):
        return "autoexception" if issubclass(value, BaseException) else "autoclass"
    return "autofunction" if callable(value) else "autodata"


class Namespace(SphinxDirective):
    required_arguments = 1

    def run(self):
        (namespace,) = self.arguments
        module = importlib.import_module(namespace)
        names = public_names(namespace)
        lines = [".. autosummary::", ""]
        lines += [f"   ~{documented_at(namespace, name)}" for name in names]
        lines += ["", f".. currentmodule:: {namespace}", ""]
        for name in names:
            if documented_at(namespace, name) == f"{namespace}.{name}":
                lines += [f".. {_directive(getattr(module, name))}:: {namespace}.{name}", ""]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=False)


def skip_generated(app, what, name, value, skip, options):
    """Leaves out the fields of named tuples, which their signature shows, unless somebody documented them."""
    return True if (getattr(value, "__doc__", "") or "").startswith("Alias for field number") else None


def mark_code(app, what, name, value, options, lines):
    """Turns `code` of Markdown into ``code`` of reStructuredText, also before a letter, as in `Item`s."""
    lines[:] = [re.sub(r"(?<![`:\w])`([^`]+)`(?!`)(\w?)", _literal, line) for line in lines]


def _literal(found):
    return f"``{found[1]}``" + (f"\\ {found[2]}" if found[2] else "")


def escape_bars(app, what, name, value, options, lines):
    """Escapes bars, which would be substitutions in reStructuredText: |x| is an absolute value."""
    lines[:] = [_without_substitutions(line) for line in lines]


def _without_substitutions(line):
    """The line with its bars escaped outside code."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    parts = re.split("(``.*?``)", line)
    return "".join(part if place % 2 else part.replace("|", r"\|") for place, part in enumerate(parts))


def setup(app):
    app.add_directive("namespace", Namespace)
    app.connect("autodoc-skip-member", skip_generated)
    app.connect("autodoc-process-docstring", mark_code, priority=400)  # before napoleon, which splits at colons
    app.connect("autodoc-process-docstring", escape_bars, priority=900)
    return {"parallel_read_safe": False}

"""The pieces of the report's HTML: text, tables, downloads, and the page around them with its style."""

import html
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any
from urllib.parse import quote

from .claim_words import unbroken

LONG = 40  # characters; a longer text may break in a table


def table_of(heads: Sequence[str], rows: Sequence[Sequence[Any]], *, heads_of_rows: bool = False) -> str:
    """A table that scrolls if it must, numbers to the right; nothing if it has no rows."""
    right = [" class=n" * (not isinstance(value, str)) for value in rows[0]] if rows else []
    top = "".join(f'<th scope="col"{side}>{escaped(head)}</th>' for head, side in zip(heads, right))
    lines = [f"<thead><tr>{top}</tr></thead>"] if top else []
    for row in rows:
        sides = [side or " class=long" * (len(str(value)) > LONG) for value, side in zip(row, right)]
        cells = [f"<td{side}>{escaped(readable(value))}</td>" for value, side in zip(row, sides)]
        if heads_of_rows:
            cells[0] = f'<th scope="row">{escaped(row[0])}</th>'
        lines.append(f"<tr>{''.join(cells)}</tr>")
    scroll = '<div class="scroll" tabindex="0" role="group" aria-label="table">'
    return f"{scroll}<table>{''.join(lines)}</table></div>" if rows else ""


def readable(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def escaped(text: str) -> str:
    return html.escape(unbroken(text))


def download(label: str, name: str, kind: str, content: str) -> str:
    address = quote(content, safe=' "!$()*+,-./:;=?@[]^_`{|}~')  # all but what ends an attribute or an address
    return f"<a download=\"{name}\" href='data:{kind};charset=utf-8,{address}'>{label}</a>"


def whole_page(title: str, subtitle: str, sections: Mapping[str, str], footer: str = "") -> str:
    keys = {heading: heading.lower().replace(" ", "-") for heading in sections}
    links = "".join(f'<a href="#{key}">{heading}</a>' for heading, key in keys.items())
    body = "".join(f'<section id="{keys[head]}"><h2>{head}</h2>\n{text}</section>\n' for head, text in sections.items())
    parts = {"links": links, "body": body, "style": STYLE, "footer": footer}
    return PAGE.substitute(title=escaped(title), subtitle=escaped(subtitle), **parts)


STYLE = """
:root { color-scheme: light dark; --ink: #1a1c1f; --soft: #555b63; --back: #fafaf8; --card: #fff; --line: #d9dbdf;
  --link: #0b57a4; --good: #0a6b4b; --part: #8a5300; --bad: #b3261e; --none: #5c6169; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e8e6e3; --soft: #a8adb5; --back: #16181b;
  --card: #1f2226; --line: #3a3f46; --link: #8ec2ff; --good: #5fd3a8; --part: #f0b35a; --bad: #ff8f86;
  --none: #a8adb5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 68rem; background: var(--back); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; text-wrap: balance; }
h2 { font-size: 1.35rem; margin: 3rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 2rem 0 .6rem; } p { max-width: 46rem; margin: .5rem 0; } a { color: var(--link); }
figure h3 { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
.subtitle, figcaption, .links, summary { color: var(--soft); }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin-top: 1rem; }
.claims { list-style: none; padding: 0; margin: 1rem 0; display: grid; gap: .75rem; }
.claim { background: var(--card); border: 1px solid var(--line); border-left: .35rem solid var(--tone);
  border-radius: .4rem; padding: .9rem 1.1rem; break-inside: avoid; }
.claim p { margin: 0; max-width: none; }
.claim .badge { float: right; margin: 0 0 .3rem 1rem; padding: .05rem .6rem; border: 1.5px solid var(--tone);
  border-radius: 1rem; color: var(--tone); font-weight: 600; font-size: .9rem; white-space: nowrap; }
.claim blockquote { margin: 0 0 .4rem; font-weight: 600; }
.holds { --tone: var(--good); } .holds-in-part { --tone: var(--part); }
.fails { --tone: var(--bad); } .not-decided { --tone: var(--none); }
#figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)); gap: 0 1.5rem; }
#figures h2, .wide { grid-column: 1 / -1; }
figure { position: relative; margin: 0 0 2.25rem; min-width: 0; break-inside: avoid; }
figcaption { max-width: 46rem; margin-top: .5rem; font-size: .95rem; }
.card { background: #fff; border: 1px solid var(--line); border-radius: .4rem; padding: 1rem; }
.card svg { display: block; margin: 0 auto; height: auto; width: 100%; max-width: var(--natural); }
.wide svg { min-width: calc(.7 * var(--natural)); } [id^=preferences] svg { shape-rendering: crispEdges; }
.scroll { overflow: auto; max-width: 100%; } details { margin-top: .4rem; }
summary { cursor: pointer; width: fit-content; font-size: .95rem; }
details .scroll { max-height: 26rem; margin-top: .5rem; border: 1px solid var(--line); border-radius: .4rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap;
  vertical-align: baseline; }
.n { text-align: right; } .long { white-space: normal; min-width: 16rem; overflow-wrap: anywhere; }
thead th { position: sticky; top: 0; background: var(--card); }
footer { margin-top: 3rem; color: var(--soft); font-size: .9rem; }
@media print { html { font-size: 68%; } body { max-width: none; padding: 0; background: #fff; }
  nav, details, .links { display: none; } .wide svg { min-width: 0; } .scroll { overflow: visible; } }
"""

PAPER = """<footer>The paper: M. Zoghi, S. Whiteson, R. Munos and M. de Rijke, <cite>Relative Upper Confidence Bound for
the K-Armed Dueling Bandit Problem</cite>, ICML 2014.</footer>
"""

# The policy lets nothing in from outside and nothing run: what a name contains stays text.
PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>$title</title>
<style>$style</style></head>
<body><header>
<h1>$title</h1>
<p class="subtitle">$subtitle</p>
<nav aria-label="On this page">$links</nav></header>
<main>$body</main>
$footer</body></html>
""")

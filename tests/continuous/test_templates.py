"""Templates: places for values, what is refused, and that no value can leave its place."""

import html
import json
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import duels
from duels.continuous.tuning import templates
from duels.continuous.tuning.templates import check_template, find_unused, render
from duels.errors import InvalidInput

SPACE = duels.Space(
    {"gap": (4, 40, "int"), "line height": (1.0, 2.0), "font": ["serif", "mono"], "bold": {"choices": [True, False]}}
)
SETTING = {"gap": 12, "line height": 1.5, "font": "serif", "bold": True}


@pytest.mark.parametrize(
    ("template", "page"),
    [
        ("{{ gap }}px {{gap}}px {{\tgap\t}}px", "12px 12px 12px"),
        ("font: {{ line height }} {{ font }}", "font: 1.5 serif"),
        ("{{ bold }} {{ bold | json }} {{font|json}}", 'true true "serif"'),
        ("a { b: { c } } {{ gap }} }} {", "a { b: { c } } 12 }} {"),  # other braces are left alone
        ("{% if x %} ${gap} {{ gap }}", "{% if x %} ${gap} 12"),
    ],
)
def test_places_have_values(template, page):
    assert render(check_template(template, SPACE), SETTING) == page


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (None, "expected an HTML page"),
        (7, "expected an HTML page"),
        (" \n", "expected an HTML page"),
        ("{{ gap }} \ud800", "expected an HTML page"),
        ("{{ gap }}\x00", "expected an HTML page"),
        ("<p>Hello</p>", r"add \{\{ gap \}\}, \{\{ line height \}\}"),
        ("{{ }} {{ gap }}", "unknown parameter in the template: ''"),
        ("{{ Gap }}", "Did you mean 'gap'"),
        ("{{ gap | upper }}", "unknown parameter in the template: 'gap | upper'"),
        ("{{ gap }}" + " " * templates.MOST, "expected at most 1,048,576"),
    ],
)
def test_what_cannot_be_a_template(template, words):
    with pytest.raises(InvalidInput, match=words):
        check_template(template, SPACE)


def test_what_a_template_does_not_show():
    assert find_unused("{{ gap }} {{ font | json }}", SPACE) == ["line height", "bold"]


@pytest.mark.parametrize(
    ("template", "found"),
    [("<SCRIPT>", True), ("<script src=x>", True), ("<p onclick = 'x'>", True), ("<p>description one=1</p>", False)],
)
def test_scripts_are_noticed(template, found):
    assert templates.has_script(template) is found


def test_a_name_may_look_like_a_filter():
    space = duels.Space({"a | json": (0.0, 1.0), "a": (0.0, 1.0)})
    assert render(check_template("{{ a | json }} {{ a }}", space), {"a | json": 0.25, "a": 0.5}) == "0.25 0.5"


@pytest.mark.parametrize("part", ["{{", "{{ ", " ", "{{ gap", "} }", "<a on", "<script", " onclick "])
def test_no_template_takes_long_to_read(part):
    """A search that goes back and forth would take hours for these, and everybody else would wait."""
    long = ("{{ " + part * templates.MOST)[: templates.MOST - 10] + "\n{{ gap }}"
    assert check_template(long, SPACE) == long
    assert find_unused(long, SPACE) == ["line height", "font", "bold"]
    templates.has_script(long)


def test_a_large_page_is_refused():
    space = duels.Space({"text": ["x" * 90, "y"]})
    template = check_template("{{ text }}" * 50_000, space)
    assert len(render(template, {"text": "y"})) == 50_000
    with pytest.raises(InvalidInput, match="the page of a setting has 4,500,000 characters"):
        render(template, {"text": "x" * 90})


class Tags(HTMLParser):
    """The tags of a page, its text, and what its script says."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.texts.append(data)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r\n"), min_size=1, max_size=40))
@example('</script><b title="x">&amp;')
def test_no_value_leaves_its_place(value):
    """In text, in an attribute and in a script, a browser reads the choice itself, and no other tag."""
    template = '<p title="{{ choice }}">{{ choice }}</p><script>x = {{ choice | json }}</script>'
    found = Tags(render(template, {"choice": value}))
    assert [tag for tag, _ in found.tags] == ["p", "script"]
    assert found.tags[0][1]["title"] == html.unescape(html.escape(value)) == value
    script = next(text for text in found.texts if text.startswith("x = "))
    assert json.loads(script.removeprefix("x = ")) == value


def test_a_study_keeps_its_template():
    study = duels.create_study(space={"gap": (4, 40, "int")}, study_name="page", storage="sqlite://")
    assert (study.template, study.render({"gap": 5})) == (None, None)
    study.set_template("<p>{{ gap }}</p>", scripts=True)
    with pytest.raises(InvalidInput, match="unknown parameter"):
        study.set_template("<p>{{ size }}</p>", scripts=False)
    again = duels.load_study("page", study._log.storage)
    assert (again.template, again.render({"gap": 5})) == ("<p>{{ gap }}</p>", "<p>5</p>")
    with pytest.raises(InvalidInput, match="gap is 50"):
        study.render({"gap": 50})
    study.set_template(None)
    assert study.template is None

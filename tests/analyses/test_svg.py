import re
from xml.etree import ElementTree

from matplotlib.axes import Axes

from deixis.analyses.svg import panel


def curve(ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], clip_on=True)
    ax.set_title("a < b & c")
    ax.grid(True)


def test_a_panel_is_well_formed_and_takes_the_pages_colours():
    svg = panel(curve, "rises", "one").svg
    ElementTree.fromstring(svg)
    assert "currentColor" in svg
    assert "var(--rule)" in svg
    assert "#010203" not in svg
    assert 'aria-label="rises"' in svg


def test_a_panel_has_no_size_of_its_own_and_loads_nothing():
    svg = panel(curve, "rises", "one").svg
    head = svg[: svg.index(">")]
    assert "viewBox" in head
    assert not re.search(r"\s(width|height)=", head)
    assert "<metadata" not in svg
    assert not re.search(r'(href|src)="(?!#)', svg)


def test_ids_of_two_panels_differ_and_their_references_lead_to_them():
    one, two = (panel(curve, "rises", name).svg for name in ("one", "two"))
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (one, two)]
    assert ids[0]
    assert not ids[0] & ids[1]
    used = set(re.findall(r"url\(#([^)]+)\)", one)) | set(re.findall(r'href="#([^"]+)"', one))
    assert used
    assert used <= ids[0]


def test_the_same_figure_gives_the_same_bytes():
    assert panel(curve, "rises", "one").svg == panel(curve, "rises", "one").svg


def test_hostile_text_in_title_and_description_stays_text():
    hostile = '"><script>alert(1)</script>'
    svg = panel(lambda ax: ax.set_title(hostile), hostile, "one").svg
    assert "<script" not in svg
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == hostile
    assert any(hostile in "".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text"))

"""axe-core finds nothing to mend in Explore, Compare and the site, in both themes."""

import os

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import ROOT, expect, painted
from tests.browser.gallery import FIELD

AXE = ROOT / "node_modules/axe-core/axe.min.js"
RULES = """async () => {
  const run = { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] };
  const { violations } = await axe.run(document, { runOnly: run });
  return violations.map(({ id, nodes }) => [id, nodes.map(({ target, failureSummary }) =>
    [target.flat().join(" "), failureSummary])]);
}"""
STREAMLITS = ("header", '[data-testid="stToolbar"]', '[data-testid="stSidebar')
"""Parts of the page that are Streamlit's own."""


def violations(page: Page) -> list[tuple[str, str, str]]:
    """Rule, element and explanation of everything that axe finds in our parts of a page."""
    if not AXE.exists():
        if "CI" in os.environ:
            pytest.fail("axe-core was not found: run npm ci.")
        pytest.skip("axe-core was not found: run npm ci.")
    page.add_script_tag(path=AXE)
    return [
        (rule, target, text)
        for rule, nodes in page.evaluate(RULES)
        for target, text in nodes
        if not target.startswith(STREAMLITS)
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    "link",
    [
        "explore?show=swipe&more=density",
        "explore?from=draw&show=class&more=effect",
        "explore?show=densities&more=classes&class=Z",
        "explore?more=about&contours=true&right=2",
        "explore?more=story&chapter=3",
        "compare?models=4",
    ],
)
def test_the_site(site, link, theme):
    page = site(link, theme=theme)
    expect(page.locator(".live canvas").first).to_be_visible()
    page.get_by_text("Move, turn, morph").click()
    assert violations(page) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("link", "field"),
    [
        ("/?more=export&tour=0", FIELD),
        ("/?from=upload&tour=0", FIELD),
        ("/compare?open=curves", ".columns .field.first"),
    ],
)
def test_the_app(visit, link, field, theme):
    page = visit(link, theme=theme)
    painted(page, field)
    assert violations(page) == []

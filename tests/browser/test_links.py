"""Links and the menu: what is in the address is the page's own, or is named."""

from tests.browser.conftest import expect, settle

CHOSEN = "/?tour=0&class=3&example=2&right=2&size=1.2&contours=true&shuffle=4"


def test_the_menu_raises_no_false_alarm(visit):
    """Streamlit carries parameters from page to page; a reload finds what it carried."""
    page = visit(CHOSEN)
    for name in ("Compare", "Lab", "Explore", "Paper", "Explore"):
        page.get_by_role("link", name=name, exact=True).click()
        settle(page)
        expect(
            page.get_by_test_id("stAlertContainer").filter(has_text="has no parameter")
        ).to_have_count(0)
        settle(page).reload()
        settle(page)
        expect(
            page.get_by_test_id("stAlertContainer").filter(has_text="has no parameter")
        ).to_have_count(0)


def test_a_mistyped_parameter_is_named(visit):
    page = visit("/?modle=linear&embed_options=show_toolbar")
    expect(page.get_by_test_id("stAlertContainer")).to_have_text(
        "This view has no parameter “modle”. Did you mean “model”?"
    )
    page.wait_for_url(lambda url: "modle" not in url and "embed_options" in url)

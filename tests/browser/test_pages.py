"""Explore and Compare in the app: a view in the browser, and a server that hears of it."""

import io
import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import Page, TimeoutError

from densembed.data.images import read_picture
from densembed.fields.agreement import confusion_matrix, disagreement, predict
from densembed.fields.field import view
from densembed.markup import JOINER
from densembed.training.checkpoint import Checkpoint
from tests.browser.conftest import (
    MODEL_FILE,
    PATIENCE,
    PICTURE_FILE,
    bring,
    chart,
    choose,
    drawn,
    expect,
    new_tab,
    open_upload,
    painted,
    places,
    serve,
    settle,
    shows,
    until,
    width_needed,
)
from tests.browser.gallery import (
    FIELD,
    FIXED,
    INPUT,
    MOVING,
    OF,
    PAPER,
    SMALL,
    TEST,
    made,
    sample,
)

FIRST, SECOND = ".columns .field.first", ".columns .field.second"
STRANGE = '<img src="//stranger.example/a.png"> ![](http://stranger.example/b) $x$ :red[c] **d**'
TITLES = {
    "Explore": "look at",
    "Compare": "What differs",
    "Paper": "be reproduced",
    "Lab": "density",
    "Train": "learn",
}


def field(pixels: torch.Tensor, key: str = MOVING, index: int = -1) -> np.ndarray:
    return view(OF[key], pixels, [index]).fields[0].sum(0)


def go(page: Page, name: str) -> Page:
    page.get_by_role("link", name=name, exact=True).click()
    return arrived(page, name)


def arrived(page: Page, name: str) -> Page:
    expect(page.get_by_role("heading", name=TITLES[name])).to_be_visible()
    return settle(page)


def file(page: Page, label: str) -> bytes:
    button = page.get_by_role("button", name=label, exact=True)
    try:
        with page.expect_download(timeout=PATIENCE) as waiting:
            button.click()
    except TimeoutError:  # Streamlit drops a click while the page runs again
        with page.expect_download() as waiting:
            button.click()
    return waiting.value.path().read_bytes()


def test_the_server_hears_of_the_view_and_exports_it(visit):
    step = OF[MOVING].steps[7]
    page = visit(f"/?tour=0&show=class weight&for=3&more=Take it away&step={step}")
    choose(page, "Class", "5")
    page.wait_for_url("**class=5*")

    def numbers() -> dict:
        with np.load(io.BytesIO(file(page, "Numbers, NPZ"))) as archive:
            return dict(archive)

    arrays = until(page, lambda: (n := numbers()) and (n["input"] == sample(5).numpy()).all() and n)
    np.testing.assert_allclose(arrays["after"].sum(0), field(sample(5), MOVING, 7), 1e-4, 1e-5)
    shows(page, FIELD, arrays["class_weight_after"].sum(0))
    assert file(page, "Model") == (PAPER / f"{MOVING}.safetensors").read_bytes()
    page.reload()  # the link is the view
    shows(settle(page), FIELD, arrays["class_weight_after"].sum(0))
    page.get_by_role("group", name="Show").get_by_role("button", name="field", exact=True).click()
    shows(page, FIELD, field(sample(5), MOVING, 7))
    page.wait_for_url(lambda url: "show=" not in url)
    other = visit("/?" + page.url.partition("?")[2])
    shows(other, FIELD, field(sample(5), MOVING, 7))
    expect(other.get_by_role("button", name="Numbers, NPZ")).to_be_visible()


def test_back_goes_a_page_at_a_time_and_restores_it(visit):
    page = visit("/?tour=0&class=3&right=2")
    page.wait_for_url("**class=3*")
    entries = page.evaluate("history.length")
    moved = painted(page, INPUT)
    go(page, "Compare")
    shows(page, INPUT, moved)
    choose(page, "Class", "5")
    page.wait_for_url("**class=5*")
    go(page, "Paper")
    assert page.evaluate("history.length") == entries + 2
    page.go_back()
    chosen(arrived(page, "Compare"), "5")
    page.go_back()
    chosen(arrived(page, "Explore"), "3")
    shows(page, INPUT, moved)
    page.go_forward()
    chosen(arrived(page, "Compare"), "5")


def test_back_from_a_list_inside_a_page_restores_it(visit):
    """What the next page writes into its link came into that of the page before, too."""
    page = visit("/?tour=0&class=3&show=overlay")
    page.wait_for_url("**model=*")  # the view has reported
    before = page.url
    settle(page).locator(".stSelectbox input").click()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("listbox")).to_be_visible()
    page.keyboard.press("Enter")
    arrived(page, "Compare")
    page.wait_for_url("**second=*")
    page.go_back()
    chosen(arrived(page, "Explore"), "3")
    page.wait_for_url(before)


def chosen(page: Page, name: str) -> None:
    pressed = page.get_by_role("group", name="Class").locator("[aria-pressed=true]")
    expect(pressed).to_have_text(name)


def test_a_control_keeps_the_focus_when_the_server_answers(visit):
    page = visit("/?tour=0")
    number = page.get_by_label("Example", exact=True)
    number.press("ArrowUp")
    page.wait_for_url("**example=2*")  # the server has answered
    settle(page)
    expect(number).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.wait_for_url("**example=3*")
    expect(number).to_be_focused()


def test_model_and_input_stay_from_page_to_page(visit):
    page = visit("/?tour=0")
    page.get_by_label("Model", exact=True).select_option(SMALL)
    choose(page, "Class", "4")
    shows(page, FIELD, field(sample(4), SMALL))
    page.wait_for_url("**class=4*")
    go(page, "Train")
    shows(go(page, "Explore"), FIELD, field(sample(4), SMALL))
    expect(page.get_by_label("Model", exact=True)).to_have_value(SMALL)


def test_no_parameter_is_unknown_after_a_change_of_page(visit):
    """Streamlit carries parameters from page to page; a reload reads what it carried."""
    page = visit("/?tour=0&class=3&example=2&right=2&size=1.2&contours=true&shuffle=4")
    for name in ("Compare", "Lab", "Explore", "Paper", "Explore"):
        go(page, name)
        settle(page).reload()
        settle(page)
        expect(page.get_by_text("has no parameter").filter(visible=True)).to_have_count(0)
    shows(page, ".left .stills figure", painted(page, INPUT))
    page.goto(page.url.partition("?")[0] + "?tour=0&modle=linear&class=3")
    expect(page.get_by_text("This view has no parameter “modle”.")).to_be_visible()
    page.wait_for_url(lambda url: "modle" not in url and "class=3" in url)


def test_an_uploaded_picture_is_the_input_until_it_is_removed(visit, pictures):
    """crxi/multipage_streamlit#1: an upload vanished on a change of page."""
    page = visit("/?tour=0&model=logistic-el-mnn-10-5-digits")
    choose(page, "Input", "Upload")
    page.locator(PICTURE_FILE).set_input_files(pictures["letter"])
    expect(page.get_by_text("not a picture")).to_be_visible()
    page.locator(PICTURE_FILE).set_input_files(pictures["digit"])
    pixels = read_picture(pictures["digit"]).pixels
    shows(page, INPUT, pixels[0].numpy() / 255)
    shows(page, FIELD, field(pixels))
    page.wait_for_url("**ink=*")
    for name in ("Compare", "Explore"):
        shows(go(page, name), INPUT, pixels[0].numpy() / 255)
        page.wait_for_url("**ink=*")
    other = visit("/?tour=0&" + page.url.partition("?")[2])
    shows(other, FIELD, field(pixels))
    choose(page, "Input", "Test images")
    shows(page, FIELD, field(sample()))
    page.wait_for_url(lambda url: "ink=" not in url)


def test_an_uploaded_picture_becomes_an_input_of_a_model_of_another_size(visit, pictures):
    page = visit("/?tour=0")
    choose(page, "Input", "Upload")
    page.locator(PICTURE_FILE).set_input_files(pictures["digit"])
    shows(page, INPUT, read_picture(pictures["digit"]).pixels[0].numpy() / 255)
    page.wait_for_url("**ink=*")
    own = Checkpoint.from_bytes(data := made("logistic-el-3", (1, 12, 21)))
    bring(page, {"name": "own.safetensors", "mimeType": "", "buffer": data})
    pixels = read_picture(pictures["digit"], (1, 12, 21), digit=own.reads_digits).pixels
    shows(page, INPUT, pixels[0].numpy() / 255)
    shows(page, FIELD, view(own, pixels).fields[0].sum(0))


def remove(page: Page) -> None:
    """Press × beside the name of an uploaded file."""
    cross = page.get_by_test_id("stFileChipDeleteBtn").filter(visible=True).get_by_role("button")
    cross.click()
    # It misses where the page just moved.
    until(page, lambda: not cross.count() or cross.evaluate_all("all => all[0]?.click()"))


@pytest.mark.parametrize("start", ["/?tour=0", "/compare"])
def test_a_picture_that_is_removed_leaves_the_page_and_the_link(visit, pictures, tmp_path, start):
    """An upload came back from the link after it had been removed."""
    pixels = {"digit": read_picture(pictures["digit"]).pixels}
    turned = Image.open(pictures["digit"]).rotate(90)
    turned.save(tmp_path / "other.png")
    pixels["other"] = read_picture(tmp_path / "other.png").pixels
    files = {"digit": pictures["digit"], "other": tmp_path / "other.png"}

    def upload(name: str) -> None:
        page.locator(PICTURE_FILE).set_input_files(files[name])
        shows(page, INPUT, pixels[name][0].numpy() / 255)
        page.wait_for_url("**ink=*")

    def without() -> None:
        shows(page, INPUT, sample()[0].numpy() / 255)
        page.wait_for_url(lambda url: "ink=" not in url)

    page = visit(start)
    choose(page, "Input", "Upload")
    upload("digit")
    remove(page)
    without()
    upload("other")
    remove(page)
    without()
    upload("digit")
    # On the other page, the picture comes from the link, too.
    go(page, "Compare" if start == "/?tour=0" else "Explore")
    shows(page, INPUT, pixels["digit"][0].numpy() / 255)
    page.get_by_role("button", name="Remove the picture").click()
    without()
    upload("other")
    page.reload()  # the link alone
    shows(settle(page), INPUT, pixels["other"][0].numpy() / 255)


def test_the_pad_stays_where_it_is_after_an_upload(visit):
    page = visit("/?tour=0&from=upload")
    expect(page.locator(".st-key-upload")).to_be_visible()
    expect(page.locator(".opinion .heading small")).to_have_text("none: no picture yet")
    choose(page, "Input", "Draw")
    pad = page.locator(".draw_pad")
    before = pad.bounding_box()
    page.wait_for_url("**from=draw*")
    (after,) = places(page, ".draw_pad")
    assert after == before
    choose(page, "Input", "Test images")
    expect(page.locator(".st-key-upload")).to_be_hidden()


def test_a_file_that_is_too_large_gets_a_sentence(visit, tmp_path):
    path = tmp_path / "large.png"
    path.write_bytes(bytes(41 * 2**20))
    page = visit("/?tour=0&from=Upload")
    page.locator(PICTURE_FILE).set_input_files(path)
    expect(page.get_by_text("is 41.0 MiB, more than the 40 MiB")).to_be_visible()


def test_missing_test_images_are_no_error_of_the_console(visit):
    """A browser writes failed requests to its console, for which `visit` fails."""
    page = visit("/?class=zzz&tour=0")
    expect(page.locator(".problems")).to_contain_text("The link sets “Class” to “zzz”")
    page.wait_for_url(lambda address: "zzz" not in address)
    buffer = made("logistic-el-2", (3, 12, 14))
    bring(page, {"name": "rgb.safetensors", "mimeType": "", "buffer": buffer})
    sentence = "No test images for this model are available. Upload a picture instead."
    expect(page.locator(".problems")).to_have_text(sentence)


@pytest.mark.parametrize("way", ["back", "menu"])
def test_a_page_can_be_left_before_its_view_has_reported(visit, server, way):
    held: list[Callable[[], None]] = []
    holding = False

    def relay(socket) -> None:
        behind = socket.connect_to_server()
        behind.on_message(
            lambda message: (
                held.append(lambda: socket.send(message)) if holding else socket.send(message)
            )
        )

    page = visit("/paper")
    page.route_web_socket(re.compile("stream"), relay)
    page.goto(server + "/compare?class=3")
    painted(settle(page), FIRST)
    page.wait_for_url("**class=3*")
    if way == "back":
        painted(go(page, "Explore"), FIELD)
    page.wait_for_timeout(1500)  # longer than a view takes to rest
    holding = True  # the server's answer
    leave = "history.back()" if way == "back" else "link.click()"
    link = page.get_by_role("link", name="Paper", exact=True).element_handle()
    page.get_by_role("group", name="Class").get_by_role("button", name="5", exact=True).evaluate(
        f"(button, link) => {{ button.click(); {leave}; }}", link
    )
    page.wait_for_timeout(1500)
    holding = False
    for send in held:
        send()
    page.wait_for_timeout(1000)  # until it has drawn all that was held
    arrived(page, "Compare" if way == "back" else "Paper")
    expect(page.get_by_text("has no parameter")).to_have_count(0)


@pytest.fixture
def strange(tmp_path):
    """A model with a stranger's words in it."""
    header = OF[FIXED].header.model_copy(deep=True)
    header.provenance.dataset_title = STRANGE
    Checkpoint(header, OF[FIXED].tensors).save(tmp_path / "odd.safetensors")
    return tmp_path / "odd.safetensors"


def test_an_uploaded_model_is_shown_compared_and_gone_elsewhere(visit, server, strange):
    page = visit("/?tour=0")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    usual = page.get_by_label("Model", exact=True).input_value()
    letter = {"name": "a.safetensors", "mimeType": "", "buffer": b"Dear reader,"}
    bring(page, letter)
    expect(page.get_by_text("is not a densembed checkpoint")).to_be_visible()
    page.locator(MODEL_FILE).set_input_files(strange)
    shows(page, FIELD, field(sample(), FIXED))
    title = page.get_by_label("Model", exact=True).locator("option:checked").inner_text()
    assert STRANGE in title.replace(JOINER, "")
    page.wait_for_url("**model=upload-*")
    key = page.get_by_label("Model", exact=True).input_value()
    go(page, "Compare")
    choose(page, "Combine densities by", "sum")
    page.get_by_label("Second model").select_option(key)
    shows(page, SECOND, field(sample(), FIXED))
    page.wait_for_url("**second=upload-*")
    elsewhere = visit(page.url[page.url.index("/compare") :])  # while the first tab has it
    painted(elsewhere, FIRST)
    shows(go(page, "Explore"), FIELD, field(sample(), FIXED))
    open_upload(page)
    page.get_by_role("button", name="Remove this file").click()
    expect(page.get_by_label("Model", exact=True)).to_have_value(usual)
    shows(page, FIELD, field(sample()))
    assert not [
        url for url in asked if not url.startswith((server, "data:", "blob:", "ws://localhost"))
    ]
    expect(elsewhere.get_by_text("kept only in the tab in which it was uploaded")).to_be_visible()


@pytest.mark.parametrize(
    ("start", "model", "figure"),
    [("/?tour=0", "Model", FIELD), ("/compare?field=sum", "First model", FIRST)],
    ids=["explore", "compare"],
)
def test_a_model_that_is_removed_leaves_the_page_and_the_link(visit, strange, start, model, figure):
    page = visit(start)
    shows(page, figure, field(sample()))
    bring(page, strange)
    shows(page, figure, field(sample(), FIXED))
    page.wait_for_url("**=upload-*")
    remove(page)  # the view still reports that it shows the model
    expect(page.get_by_label(model, exact=True)).to_have_value(MOVING)
    shows(page, figure, field(sample()))
    page.wait_for_url(lambda url: "upload-" not in url)
    expect(page.get_by_text(re.compile("deleted|not found")).filter(visible=True)).to_have_count(0)


def test_compare_and_the_parts_of_the_server_below_it(visit):
    page = visit(f"/compare?first={MOVING}&second={FIXED}&class=3")
    shows(page, SECOND, field(sample(3), FIXED))
    shows(page, ".columns .change.second", field(sample(3), FIXED) - field(sample(3)), 2e-5)
    choose(page, "More", "Models and settings")
    expect(page.locator(".facts table")).to_be_visible()
    choose(page, "More", "Training curves")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    choose(page, "More", "Confusion matrices")
    guesses = [predict(OF[key], TEST.images) for key in (MOVING, FIXED)]
    counts = [confusion_matrix(guess, TEST.labels.numpy(), 10) for guess in guesses]
    expect(chart(page, "second-confusion-change")).to_be_visible()
    change = np.array(drawn(page, "second-confusion-change"), dtype=float)
    off = ~np.eye(10, dtype=bool)
    assert np.array_equal(change[off], (counts[1] - counts[0])[off])
    choose(page, "More", "Where they disagree")
    index = int(disagreement(*guesses, TEST.labels.numpy()).first_only[0])
    page.locator(f".st-key-open-{index} button").filter(visible=True).first.click()
    shows(page, INPUT, TEST.images[index, 0].numpy() / 255)
    shows(page, FIRST, field(TEST.images[index]))
    page.wait_for_url("**open=disagreements*")
    choose(page, "More", "All classes")
    expect(page.locator(".atlases figure")).to_have_count(20)


def test_all_classes_are_those_of_a_model_that_is_loaded_late(visit):
    page = visit(f"/compare?first={MOVING}&second={FIXED}&open=classes&field=sum")
    last = ".atlases .part:nth-child(2) figure:nth-child(10)"
    shows(page, last, field(sample(), FIXED))  # of fixed densities, for every class
    held: list = []
    page.route(f"**/checkpoints/{SMALL}.safetensors*", lambda route: held.append(route))
    page.get_by_label("Second model").select_option(SMALL)
    page.wait_for_url(f"**second={SMALL}*")  # the view has come to rest without the model
    until(page, lambda: held)
    for route in held:
        route.continue_()
    shows(page, last, field(sample(), SMALL))


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_what_compare_exports_is_what_it_shows(visit, kind):
    step = OF[MOVING].steps[5]
    link = f"first={MOVING}&second={FIXED}&open=Take it away&step={step}&field={kind}"
    page = visit(f"/compare?{link}")
    with np.load(io.BytesIO(file(page, "Numbers, NPZ"))) as archive:
        numbers = dict(archive)
    for name, figure in (("first", FIRST), ("second", SECOND)):
        shows(page, figure, numbers[f"field_{name}"].sum(0), 1e-4)
        assert numbers[f"step_{name}"] == step
    assert b'"link": "compare?' in file(page, "Page, HTML")
    text = file(page, "Figure, SVG").decode()
    assert "second − first" in text
    assert ("mean density" in text) == (kind == "mean")
    assert file(page, "Second model") == (PAPER / f"{FIXED}.safetensors").read_bytes()


def test_the_slider_asks_no_server_and_stays_when_one_answers(visit):
    page = visit(f"/compare?first={MOVING}&second={FIXED}")
    steps = OF[MOVING].steps
    painted(page, SECOND)
    settle(page)
    received = []
    wire = page.context.new_cdp_session(page)
    wire.send("Network.enable")
    wire.on(
        "Network.webSocketFrameReceived",
        lambda frame: received.append(len(frame["response"]["payloadData"])),
    )
    page.get_by_label("Step of training").press("ArrowLeft")
    shows(page, SECOND, field(sample(), FIXED, -2))
    page.wait_for_url(f"**step={steps[-2]}*")
    settle(page)
    assert sum(received) < 100_000
    expect(page.locator(".columns .stage")).to_have_attribute("data-step", str(steps[-2]))


def test_the_tour_is_taken_skipped_and_not_shown_again(visit):
    page = visit()
    card = page.get_by_role("dialog", name="A tour of five steps")
    painted(page, FIELD)
    for number in range(1, 6):
        expect(card).to_contain_text(f"{number} of 5")
        marked = page.locator(".live *").evaluate_all(
            "all => all.filter(each => getComputedStyle(each).outlineOffset === '4px'"
            " && each.checkVisibility()).length"
        )
        assert marked == 1
        card.get_by_role("button", name="Next" if number < 5 else "Done").click()
    expect(card).to_be_hidden()
    page.wait_for_url("**tour=0*")
    page.goto(page.url.partition("?")[0])
    painted(settle(page), FIELD)
    expect(card).to_be_hidden()
    page.goto(page.url.partition("?")[0] + "?tour=4")
    expect(card).to_contain_text("4 of 5")
    card.get_by_role("button", name="Skip").press("Escape")
    expect(page.get_by_role("button", name="▶ Watch it learn")).to_be_focused()
    expect(card).to_be_hidden()


def test_on_a_phone_the_tour_covers_no_part_that_it_describes(visit):
    page = visit("/?tour=2", width=420)
    painted(page, FIELD)
    card = page.get_by_role("dialog", name="A tour of five steps")
    for part in (".ways", ".details"):
        while part == ".ways" and "4 of 5" not in card.inner_text():
            card.get_by_role("button", name="Next").click()
            settle(page)
        if part == ".details":
            card.get_by_role("button", name="Next").click()
        (shown,), (over,) = places(page, f".live {part}"), places(page, ".st-key-tour-card .tour")
        assert 0 <= shown["y"] < over["y"]


@pytest.mark.parametrize("link", ["/", "/compare"])
def test_hidden_parts_are_absent(visit, link):
    page = visit(f"{link}?hide=menu,sidebar,predictions,more&tour=0")
    painted(page, FIELD if link == "/" else FIRST)
    for part in (".choices", ".live .details", ".opinion"):
        expect(page.locator(part).first).to_be_hidden()
    expect(page.get_by_test_id("stHeader")).to_be_hidden()
    expect(page.get_by_label("Step of training")).to_be_visible()


@pytest.mark.parametrize(
    "link",
    [
        "/?more=density&show=densities",
        "/?more=Take it away",
        "/?from=Upload",
        "/?from=Draw",
        f"/compare?models=4&first={MOVING}&open=settings",
        "/train",
    ],
)
def test_a_phone_scrolls_one_way(visit, link):
    page = visit(link, width=420, theme="dark")
    if link != "/train":
        expect(page.locator(".live canvas").first).to_be_attached()
    assert width_needed(settle(page)) <= 420


def test_a_printed_view_has_its_fields(visit):
    page = visit("/?tour=0")
    values = painted(page, FIELD)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 750, "height": 1000})
    expect(page.locator(f"{FIELD} canvas")).to_be_visible()
    expect(page.locator(".changes")).to_be_hidden()
    box = page.locator(f"{FIELD} canvas").bounding_box()
    assert box["x"] + box["width"] <= 750
    shows(page, FIELD, values)


def test_the_link_is_copied(browser, server):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(server + "/?tour=0&show=difference")
    settle(page)
    page.wait_for_url("**model=*")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.url
    assert re.search("show=difference", copied)
    expect(page.get_by_role("button", name="Copy link")).to_be_visible()  # as before the first copy
    # A click just before is part of the link, which the page writes a moment later.
    five = page.get_by_role("group", name="Class").get_by_role("button", name="5", exact=True)
    five.evaluate(
        "(five, copy) => { five.click(); copy.click(); }",
        page.get_by_role("button", name="Copy link").element_handle(),
    )
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert re.search("class=5", page.evaluate("navigator.clipboard.readText()"))
    context.close()


def test_a_server_that_is_away_is_named_in_our_words(browser, tmp_path):
    with serve(tmp_path) as address:
        page = new_tab(browser, address, 320)
        page.goto(f"{address}/train")
        settle(page)
    dialog = page.get_by_role("dialog", name="Connection error")
    expect(dialog).to_contain_text("The server cannot be reached: check the connection")
    assert "streamlit" not in dialog.inner_text().lower()
    page.close()

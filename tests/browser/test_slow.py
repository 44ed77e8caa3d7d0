"""A slow connection: what the browser and the server send each other crosses on the way."""

import random
import re
import time
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page

from tests.browser.conftest import (
    MODEL_FILE,
    PICTURE_FILE,
    bring,
    choose,
    expect,
    numbers,
    painted,
    settle,
    until,
)
from tests.browser.gallery import FIELD, FIXED, INPUT, MOVING, OF, SMALL
from tests.browser.test_pages import arrived, chosen, go

SLOWEST = 0.8
"""Seconds that a message takes at most, each way."""


class Connection:
    """The messages of a page, each of which arrives late, in their order."""

    def __init__(self, page: Page, seed: int):
        self.page = page
        self.random = random.Random(seed)
        self.waiting: list[tuple[float, Callable[[], None]]] = []
        self.last = [0.0, 0.0]  # when the last message of each way arrives
        page.route_web_socket(re.compile("stream"), self.relay)

    def relay(self, socket) -> None:
        behind = socket.connect_to_server()
        behind.on_message(lambda message: self.delay(0, lambda: socket.send(message)))
        socket.on_message(lambda message: self.delay(1, lambda: behind.send(message)))

    def delay(self, way: int, send: Callable[[], None]) -> None:
        at = max(self.last[way], time.monotonic() + SLOWEST * self.random.random())
        self.last[way] = at
        self.waiting.append((at, send))

    def when(self, condition: Callable) -> None:
        """Let messages arrive until something is true."""
        until(self.page, lambda: self.deliver() or condition())

    def pause(self) -> None:
        """The visitor goes on at any moment of what happens between page and server."""
        end = time.monotonic() + 2 * SLOWEST * self.random.random()
        self.when(lambda: time.monotonic() > end)

    def deliver(self) -> None:
        now = time.monotonic()
        due = sorted((each for each in self.waiting if each[0] <= now), key=lambda each: each[0])
        self.waiting = [each for each in self.waiting if each[0] > now]
        for _, send in due:
            send()


@pytest.mark.parametrize("seed", range(2))
def test_a_model_comes_and_goes_over_a_slow_connection(visit, server, tmp_path, seed):
    OF[FIXED].save(tmp_path / "own.safetensors")
    page = visit(None)
    connection = Connection(page, seed)

    when, pause = connection.when, connection.pause

    def shown() -> str:
        return page.get_by_label("Model", exact=True).evaluate_all("all => all[0]?.value ?? ''")

    page.goto(server + "/?tour=0")
    when(lambda: shown() == MOVING)
    pause()
    opener = page.locator("[class*=st-key-brought] summary").filter(visible=True)
    when(lambda: opener.evaluate_all("all => all[0]?.click() ?? all.length"))
    files = page.locator(MODEL_FILE)
    when(files.count)
    if seed % 2:
        files.set_input_files({"name": "a.safetensors", "mimeType": "", "buffer": b"Dear reader,"})
        when(page.get_by_text("is not a densembed checkpoint").count)
        pause()
    files.set_input_files(tmp_path / "own.safetensors")
    when(lambda: shown().startswith("upload-"))
    pause()
    cross = page.get_by_test_id("stFileChipDeleteBtn").filter(visible=True).get_by_role("button")
    when(cross.count)
    when(lambda: cross.evaluate_all("all => all[0]?.click()") or not cross.count())
    when(lambda: shown() == MOVING)
    pause()
    when(lambda: not connection.waiting)
    when(lambda: shown() == MOVING and "upload-" not in page.url)


@pytest.mark.parametrize("start", ["/?tour=0", "/compare"])
def test_a_model_on_its_way_is_not_lost_by_a_click_beside_its_field(visit, tmp_path, start):
    OF[FIXED].save(tmp_path / "own.safetensors")
    page = visit(start)
    held = []
    page.route("**/upload_file/**", lambda route: held.append(route))
    bring(page, tmp_path / "own.safetensors")
    until(page, lambda: held)
    page.mouse.click(page.viewport_size["width"] - 40, 100)
    page.locator("[class*=st-key-brought] summary").click()  # closes the field
    for route in held:
        route.continue_()
    page.wait_for_url("**upload-*")


@pytest.mark.parametrize("seed", range(2))
def test_the_page_that_was_chosen_last_is_shown(visit, server, seed):
    """A view that opens while another page is on its way reports nothing."""
    page = visit(None)
    connection = Connection(page, seed)
    page.goto(server + "/train")

    def shows(title: str) -> None:
        connection.when(lambda: title in "".join(page.locator("h1").all_inner_texts()))

    shows("learn")
    for name, title in (("Explore", "look at"), ("Train", "learn"), ("Compare", "What differs")):
        page.get_by_role("link", name=name, exact=True).evaluate("link => link.click()")
        shows(title)
        connection.pause()
    page.get_by_role("link", name="Train", exact=True).evaluate("link => link.click()")
    shows("learn")
    for _ in range(3):
        connection.pause()
    connection.when(lambda: not connection.waiting)
    shows("learn")


def test_a_page_can_be_left_while_its_view_arrives(visit, server):
    held: list[Callable[[], None]] = []
    chosen = released = False

    def relay(socket) -> None:
        behind = socket.connect_to_server()

        def pass_on(message) -> None:
            # From the first message with the view on.
            if chosen and not released and (held or b"-explore" in message):
                held.append(lambda: socket.send(message))
            else:
                socket.send(message)

        behind.on_message(pass_on)

    page = visit(None)
    page.route_web_socket(re.compile("stream"), relay)
    page.goto(server + "/train")
    settle(page)
    chosen = True
    page.get_by_role("link", name="Explore", exact=True).click()
    until(page, lambda: held)
    page.wait_for_timeout(1000)  # until all of Explore is there
    explore = len(held)
    page.get_by_role("link", name="Train", exact=True).evaluate("link => link.click()")
    page.wait_for_timeout(200)
    for send in held[:explore]:
        send()
    page.wait_for_timeout(1500)  # longer than a view takes to rest
    released = True
    for send in held[explore:]:
        send()
    page.wait_for_timeout(1000)  # until what it sent would have been answered
    arrived(page, "Train")


@pytest.mark.parametrize("way", ["back", "menu"])
def test_a_page_can_be_left_before_streamlit_sends_its_report(visit, server, way):
    """Streamlit sends the change of a widget in a later task, and a click may come first."""
    page = visit(None)
    page.add_init_script(
        """
        const { setTimeout } = window;
        window.sent = 0;
        window.setTimeout = (task, ...rest) => {
          const timer = setTimeout(task, ...rest);
          if (String(task).includes("sendUpdateWidgetsMessage")) {
            window.sent++;
            if (window.leave)
              queueMicrotask(() => { window.leave?.(); window.leave = undefined; });
          }
          return timer;
        };"""
    )
    page.goto(server + "/compare?class=3")
    settle(page)
    page.wait_for_url("**field=*")  # the view has reported
    for name in ("Explore", "Compare"):
        before = page.evaluate("window.sent")
        go(page, name)
        # The view has reported where it opened, or this report would be the one that is left.
        until(page, lambda before=before: page.evaluate("window.sent") > before)
    link = page.get_by_role("link", name="Paper", exact=True).element_handle()
    leave = "history.back()" if way == "back" else "link.click()"
    page.evaluate(f"link => {{ window.leave = () => {leave}; }}", link)
    choose(page, "Class", "5")
    until(page, lambda: page.evaluate("!window.leave"))
    page.wait_for_timeout(1000)  # until what Streamlit sent late would have been answered
    arrived(page, "Explore" if way == "back" else "Paper")
    expect(page.get_by_text("has no parameter")).to_have_count(0)


class Held:
    """What the server sends to a page, held back while `holding`."""

    def __init__(self, page: Page):
        self.holding = False
        self.sent = 0  # messages to the server
        self.messages: list[Callable[[], None]] = []
        page.route_web_socket(re.compile("stream"), self.relay)

    def relay(self, socket) -> None:
        behind = socket.connect_to_server()

        def to_server(message) -> None:
            self.sent += 1
            behind.send(message)

        socket.on_message(to_server)
        behind.on_message(lambda message: self.take(lambda: socket.send(message)))

    def take(self, send: Callable[[], None]) -> None:
        if self.holding:
            self.messages.append(send)
        else:
            send()

    def release(self) -> None:
        self.holding = False
        for send in self.messages:
            send()
        self.messages.clear()


def choose_late(page: Page, held: Held, own: str) -> None:
    """Choose a class of a view, whose report has a parameter; the server's answer is held back."""
    page.wait_for_url(f"**{own}=*")
    settle(page)
    held.holding, before = True, held.sent
    choose(page, "Class", "5")
    until(page, lambda: held.sent > before and held.messages)


def test_forward_returns_to_a_page_whose_answer_came_after_back(visit, server):
    """Streamlit opens the page of each answer, and a new entry in the history ends Forward."""
    page = visit(None)
    held = Held(page)
    page.goto(server + "/explore")
    settle(page)
    go(page, "Compare")
    choose_late(page, held, "field")
    before = held.sent
    page.evaluate("history.back()")
    until(page, lambda: held.sent > before)  # Streamlit has asked for the page
    held.release()
    arrived(page, "Explore")
    page.evaluate("history.forward()")
    arrived(page, "Compare")


@pytest.mark.parametrize("way", ["back", "menu"])
def test_a_page_has_its_own_parameters_whatever_the_last_one_writes_late(visit, server, way):
    """Streamlit writes an answer to the page that was left into the address of the next one."""
    page = visit(None)
    held = Held(page)
    page.goto(server + "/lab")
    settle(page)
    go(page, "Explore")
    choose_late(page, held, "model")
    before = held.sent
    if way == "back":
        page.evaluate("history.back()")
    else:
        page.get_by_role("link", name="Lab", exact=True).evaluate("link => link.click()")
    until(page, lambda: held.sent > before)
    held.release()
    arrived(page, "Lab")
    until(page, lambda: "class=" not in page.url)
    settle(page).reload()
    settle(page)
    expect(page.get_by_text("has no parameter")).to_have_count(0)


def test_back_restores_a_view_that_was_left_by_a_list_before_its_report(visit, server):
    """The report would bring the page back, in the history as well, with the next page's link."""
    page = visit(None)
    held = Held(page)
    page.goto(server + "/?tour=0&class=3&show=overlay")
    page.wait_for_url("**model=*")  # the view has reported
    settle(page)
    before, entries = page.url, page.evaluate("history.length")
    five = page.get_by_role("button", name="5", exact=True).element_handle()
    page.locator(".stSelectbox input").click()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("listbox")).to_be_visible()
    held.holding, sent = True, held.sent
    page.keyboard.press("Enter")
    five.evaluate("button => button.click()")
    until(page, lambda: held.sent > sent and held.messages)
    page.wait_for_timeout(1000)  # longer than a view takes to rest
    held.release()
    arrived(page, "Compare")
    page.wait_for_url("**second=*")
    settle(page)
    assert page.evaluate("history.length") == entries + 1
    page.go_back()
    chosen(arrived(page, "Explore"), "3")
    page.wait_for_url(before)


def while_held(page: Page, held: Held, *actions: Callable[[], None]) -> None:
    """Act, each time once an answer to the last action is on its way; then all answers arrive."""
    held.holding = True
    for act in actions:
        answered(page, held, act)
    held.release()


def answered(page: Page, held: Held, act: Callable[[], None]) -> None:
    """Act, and wait until an answer is held back."""
    sent, received = held.sent, len(held.messages)
    act()
    until(page, lambda: held.sent > sent and len(held.messages) > received)


def test_an_answer_to_an_earlier_step_of_the_tour_does_not_lead_back(visit, server):
    page = visit(None)
    held = Held(page)
    page.goto(server + "/?tour=1")
    painted(settle(page), FIELD)
    card = page.get_by_role("dialog", name="A tour of five steps")
    card.evaluate(
        """card => {
          window.counts = [];
          const note = () => window.counts.push(card.querySelector(".count").textContent);
          new MutationObserver(note).observe(card, { childList: true, subtree: true });
        }"""
    )
    while_held(page, held, *[card.get_by_role("button", name="Next").click] * 4)
    page.wait_for_url("**tour=5*")
    expect(settle(page).get_by_text("5 of 5")).to_be_visible()
    counts = page.evaluate("window.counts")
    assert counts == sorted(counts)


def test_a_photograph_is_turned_as_often_as_it_is_asked_for(visit, server, tmp_path):
    picture = np.full((100, 200), 255, np.uint8)
    picture[20:80, 70:80] = 0
    Image.fromarray(picture).save(tmp_path / "one.png")
    page = visit(None)
    held = Held(page)
    page.goto(server + "/?tour=0&from=Upload")
    settle(page).locator(PICTURE_FILE).set_input_files(tmp_path / "one.png")
    image = page.locator(".sheet img")
    expect(image).to_be_visible()
    before = image.get_attribute("src")
    while_held(page, held, *[settle(page).get_by_role("button", name="Turn").click] * 2)
    is_wide = "image => image.naturalWidth === 200 && image.naturalHeight === 100"
    until(page, lambda: image.get_attribute("src") != before and image.evaluate(is_wide))


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (0, "The server cannot be reached: check the connection, then reload the page."),
        (502, "A web page came instead of the data (status 502): reload the page."),
        (200, "A web page came instead of the data (status 200): reload the page."),
    ],
    ids=["no answer", "error of a proxy", "page of a login"],
)
def test_images_that_do_not_come_are_reported_in_a_sentence(browser, server, status, sentence):
    """The words were the browser's own, which differ, or the page itself."""

    def answer(route) -> None:
        if status:
            route.fulfill(status=status, body="<html>x</html>", content_type="text/html")
        else:
            route.abort()

    page = browser.new_page()
    page.route("**/samples/**", answer)
    page.goto(f"{server}/explore")
    expect(page.locator(".problems")).to_have_text(sentence)
    page.close()


def test_images_on_their_way_are_not_taken_for_blank_ones(visit):
    page = visit("/?tour=0")
    wait = []
    page.route("**/samples/**", lambda route: wait.append(route))
    choose(page, "Class", "3")
    expect(page.get_by_text("none: loading the test images …").first).to_be_visible()
    expect(page.get_by_text("no digit found")).to_have_count(0)
    blank = page.get_by_text("blank while loading")
    expect(blank.first).to_be_visible()
    for route in wait:
        route.continue_()
    expect(page.get_by_text("loading the test images")).to_have_count(0)
    expect(blank).to_have_count(0)
    chosen(page, "3")
    assert painted(page, INPUT).any()


def test_images_of_a_class_that_did_not_come_are_loaded_again(browser, server):
    """They stayed away until the page was loaded again, and nothing was said."""
    page = browser.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{server}/?tour=0&class=3")
    painted(settle(page), FIELD)
    page.route("**/samples/**", lambda route: route.abort())
    choose(page, "Class", "8")
    problems = page.locator(".problems")
    expect(problems).to_contain_text("The server cannot be reached")
    expect(page.get_by_text("none: the test images could not be loaded").first).to_be_visible()
    expect(page.get_by_text("loading the")).to_have_count(0)
    page.unroute("**/samples/**")
    choose(page, "Class", "8")
    expect(problems).to_be_hidden()
    until(page, lambda: numbers(page, INPUT).any())
    page.close()
    assert not faults


def test_the_sentence_about_a_lost_line_goes_when_the_line_is_back(browser, server):
    """It stayed, and so did the first model in place of the one that did not come."""
    page = browser.new_page()
    page.goto(f"{server}/compare?first={MOVING}&second={MOVING}")
    painted(settle(page), INPUT)
    problems = page.locator(".problems")
    page.context.set_offline(True)
    page.get_by_label("Second model", exact=True).select_option(FIXED)
    expect(problems).to_contain_text("The server cannot be reached")
    page.context.set_offline(False)
    expect(problems).to_be_hidden()
    expect(page.get_by_label("Second model", exact=True)).to_have_value(FIXED)
    page.wait_for_url(f"**second={FIXED}*")
    page.close()


@pytest.mark.parametrize("part", ["**/samples/**", "**/checkpoints/**"])
@pytest.mark.parametrize("start", ["/explore?class=3", "/compare?class=3"])
def test_a_view_that_did_not_arrive_opens_when_the_line_is_back(browser, server, start, part):
    page = browser.new_page()
    page.route(part, lambda route: route.abort())
    page.goto(f"{server}{start}")
    problems = page.locator(".problems")
    expect(problems).to_contain_text("The server cannot be reached")
    page.unroute(part)
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(problems).to_be_hidden()
    until(page, lambda: numbers(page, INPUT).any())
    chosen(page, "3")
    page.close()


@pytest.mark.parametrize(
    ("start", "label"), [("/?tour=0&model=", "Model"), ("/compare?first=", "First model")]
)
def test_another_model_is_chosen_where_one_did_not_arrive(browser, server, start, label):
    page = browser.new_page()
    page.route(f"**/checkpoints/{FIXED}*", lambda route: route.fulfill(status=500, body="Gone."))
    page.goto(f"{server}{start}{FIXED}&class=3")
    expect(page.locator(".problems")).to_have_text("Gone.")
    page.get_by_label(label, exact=True).select_option(SMALL)
    painted(page, INPUT)
    expect(page.locator(".problems")).to_be_hidden()
    page.wait_for_url(f"**={SMALL}*")
    chosen(page, "3")
    page.close()


def test_a_comparison_on_its_way_says_so(visit, server):
    """It was an empty page with empty lists until the second model came."""
    page = visit(None)
    held = []
    page.route(f"**/checkpoints/{FIXED}*", lambda route: held.append(route))
    page.goto(f"{server}/compare?first={MOVING}&second={FIXED}")
    until(page, lambda: held)
    settle(page)
    view = page.locator(".view")
    caption = "view => getComputedStyle(view, '::before').content"
    until(page, lambda: "Loading the model …" in view.evaluate(caption))
    expect(page.get_by_label("Second model", exact=True)).to_have_count(0)
    for route in held:
        route.continue_()
    painted(page, INPUT)

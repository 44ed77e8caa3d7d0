"""A run, from the click that starts it to its end, with tabs that come and go."""

import re
import shutil

import numpy as np
import pytest
from playwright.sync_api import Page

from densembed.data import load_dataset
from densembed.models.names import describe
from densembed.runs import Run, all_runs
from densembed.training.checkpoint import Checkpoint
from tests.browser.conftest import chart, drag, expect, painted, serve, settle, until, visitor
from tests.waiting import wait_for

NEW = "/train?network=logistic-el-3"
"""The form of a new training, with a small model."""


def start(page: Page, epochs: int) -> str:
    """Start a training with the form's model; the link to its run."""
    number = page.get_by_role("spinbutton", name="Epochs")
    number.fill(str(epochs))
    number.press("Enter")
    settle(page)
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"run=\d"))
    return re.search(r"/train\?.*", page.url)[0]


def says(page: Page, word: str) -> None:
    expect(page.get_by_test_id("stAlert").filter(has_text=word)).to_be_visible()


def stop(page: Page):
    return page.get_by_role("button", name="Stop")


@pytest.fixture
def ended(folder):
    """No run of a test goes on after it, whether or not it holds."""
    yield
    for run in all_runs(folder / "runs"):
        if run.state() == "running":
            run.stop()
        wait_for(lambda run=run: run.state() != "running")


@pytest.fixture
def long_run(visit, ended):
    """A run that would take minutes, training, in the tab that started it."""
    page = visit(NEW)
    link = start(page, 10_000)
    expect(page.get_by_text(re.compile("training · step"))).to_be_visible()
    return page, link


def test_run_is_watched_to_its_end_and_shown_in_explore(visit):
    page = visit(NEW)
    start(page, 3)
    says(page, "Done · test error")
    painted(page, ".st-key-run-fields figure:last-child")
    test = load_dataset("digits").test
    seven = test.images[(test.labels == 7).nonzero()[0, 0], 0] / 255
    np.testing.assert_allclose(painted(page, ".st-key-the-input figure"), seven, atol=1e-5)
    page.get_by_role("link", name="Show in Explore").click()
    expect(page.get_by_role("heading", name="look at")).to_be_visible()
    settle(page)
    model = page.get_by_label("Model", exact=True).locator("option:checked")
    expect(model).to_have_text(re.compile("B = 3 ·"))
    painted(page, ".pair .after")
    page.go_back()
    link = page.get_by_role("link", name="Show in Explore")
    link.click()  # at once
    page.wait_for_url("**/?model=*")
    expect(page.get_by_role("heading", name="look at")).to_be_visible()
    page.go_back()
    says(page, "Done · test error")
    page.wait_for_url(re.compile(r"train\?.*run=\d"))
    link.hover()
    assert link.get_attribute("href").partition("?")[0] == page.url.partition("train")[0]


def test_reload_finds_the_run_and_a_second_tab_stops_it(visit, long_run):
    page, link = long_run
    painted(page, ".st-key-run-fields figure:last-child")
    page.reload()
    expect(settle(page).get_by_text(re.compile("training · step"))).to_be_visible()
    expect(stop(page)).to_be_enabled()
    listed = visit("/train")
    row = listed.get_by_test_id("stCaptionContainer").filter(has_text=re.compile("^training · "))
    expect(row).to_have_count(1)
    stop(visit(link)).click()
    expect(page.get_by_test_id("stAlert").filter(has_text="Stopped")).to_be_visible()
    expect(page.get_by_role("button", name="Start training")).to_be_enabled()
    expect(stop(page)).to_have_count(0)
    expect(row).to_have_count(0)


def test_run_goes_on_when_all_tabs_are_closed(visit):
    page = visit(NEW)
    link = start(page, 30)
    page.close()
    page = visit(link)
    says(page, "Done · test error")
    expect(page.get_by_text("epoch 30", exact=True)).to_be_visible()


def test_high_learning_rate_ends_in_a_sentence(visit):
    page = visit(NEW)
    page.get_by_text("More settings", exact=True).click()
    rate = page.get_by_role("spinbutton", name="Learning rate")
    rate.fill("1000")
    rate.press("Enter")
    settle(page)
    start(page, 100)
    says(page, "Diverged · test error")
    says(page, "The loss became too large")
    says(page, "was saved.")


def verb(page: Page, name: str):
    return page.get_by_role("button", name=name, exact=True)


def trains(page: Page) -> None:
    expect(page.get_by_text(re.compile("training · step"))).to_be_visible()


def test_pause_in_one_tab_resume_in_another(visit, long_run):
    page, link = long_run
    verb(visit(link), "Pause").click()
    says(page, "Paused")
    other = visit(link)
    steps = other.locator(".st-key-run-fields .heading").filter(has_text="steps")
    before = steps.inner_text()
    verb(other, "One epoch").click()
    expect(steps).not_to_have_text(before)
    says(other, "Paused · test error")
    verb(other, "Resume").click()
    trains(other)
    trains(page)  # which showed "Paused", and follows by itself
    verb(other, "Pause").click()
    says(page, "Paused")
    verb(other, "Stop").click()
    says(page, "Stopped")


def test_a_key_that_is_pressed_twice_presses_one_button(long_run):
    """The button that replaces the pressed one is a key further."""
    page, link = long_run
    for name, successor in (("Pause", "Resume"), ("Resume", "Pause"), ("Stop", "Run again")):
        verb(page, name).press("Enter")
        expect(verb(page, successor)).to_be_enabled()
        row = page.locator("[data-testid=stHorizontalBlock]:focus")
        expect(row.get_by_role("button", name=successor, exact=True)).to_be_visible()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        expect(verb(page, successor)).to_be_focused()
    assert page.url.endswith(link)


def test_name_change_and_delete(visit):
    page = visit(NEW)
    start(page, 2)
    says(page, "Done")
    others = visit("/train")  # lists the run, and follows by itself
    field = page.get_by_role("textbox", name="Name", exact=True)
    verb(page, "Rename").click()
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    for keys, next_one in ((["Shift+Tab"], "Rename"), (["Tab", "Tab"], "Delete")):
        expect(field).to_be_hidden()
        verb(page, "Rename").press("Enter")
        expect(field).to_be_focused()
        for key in keys:  # the field closes when they leave it
            page.keyboard.press(key)
        expect(field).to_be_hidden()
        expect(verb(page, next_one)).to_be_focused()
    verb(page, "Rename").press("Enter")
    expect(field).to_be_focused()
    field.fill("**mine** $x$")
    field.press("Enter")
    expect(page.get_by_role("heading", name="**mine** $x$")).to_be_visible()
    expect(others.get_by_text("**mine** $x$ · ")).to_be_visible()
    elsewhere = visit(f"/?tour=0&model={page.url.partition('run=')[2]}")
    model = elsewhere.get_by_label("Model", exact=True).locator("option:checked")
    expect(model).to_have_text(re.compile(r"^\*\*mine\*\* \$x\$ · "))
    with page.expect_download() as download:
        verb(page, "Download").click()
    assert download.value.suggested_filename.endswith(".safetensors")
    verb(page, "Edit settings and rerun").click()
    expect(page.get_by_role("spinbutton", name="Epochs")).to_have_value("2")
    link = re.search(r"/train\?.*", page.url)[0]
    verb(page, "Delete").press("Enter")
    expect(verb(page, "Delete permanently")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/train\?network=logistic-el-3$"))
    expect(others.get_by_text("**mine** $x$ · ")).to_have_count(0)
    expect(visit(link).get_by_text("may have been deleted")).to_be_visible()


def test_server_restart_and_resume(browser, visit, ended, folder, tmp_path):
    with serve(tmp_path) as address, visitor(browser, address) as first:
        page = first(NEW)
        link = start(page, 10_000)
        trains(page)
    (run,) = all_runs(tmp_path / "runs")
    assert run.state() == "interrupted"
    # The next server is the one of the other tests, which has not heard of the run, either.
    run = Run(shutil.move(run.path, folder / "runs" / run.identifier))

    def begun() -> list[int]:
        return [event["step"] for event in run.events() if event["kind"] == "start"]

    page = visit(link)
    says(page, "Interrupted")
    verb(page, "Resume").click()
    trains(page)
    before = until(page, lambda: begun()[1:])
    until(page, lambda: run.events()[-1].get("step", 0) > before[0])
    stop(page).click()
    says(page, "Stopped")
    assert len(begun()) == 2
    assert begun()[1] > 0
    epochs = [epoch.epoch for epoch in run.checkpoint().header.epochs]
    assert epochs == list(range(1, len(epochs) + 1))


def test_a_link_to_no_run_is_named(visit):
    page = visit("/train?run=gone")
    says(page, "The link sets “Run” to “gone”, which was not found.")
    painted(page, ".st-key-run-fields figure:last-child")  # the example is there instead


def test_a_click_during_a_redraw_is_not_lost_and_stop_works_after_a_reload(long_run):
    page, _ = long_run
    verb(page, "Pause").click()
    says(page, "Paused")
    settle(page)
    # The second click comes while the page is redrawn because of the first one.
    page.get_by_test_id("stApp").evaluate(
        """app => {
          const button = (name) =>
            [...app.querySelectorAll("button")].find((each) => each.innerText.trim() === name);
          new MutationObserver((_, observer) => {
            if (app.dataset.testScriptState !== "running") return;
            observer.disconnect();
            button("Resume").click();
          }).observe(app, {attributes: true});
          button("Edit settings and rerun").click();
        }"""
    )
    trains(page)
    page.reload()
    stop(settle(page)).click()
    says(page, "Stopped")
    expect(page.get_by_role("link", name="Show in Explore")).to_be_visible()


def of_curves(page: Page, what: str):
    """Something of the drawing of the curves: of the new one, where one replaces another."""
    handle = page.wait_for_function(
        f"""() => {{
          const plots = [...document.querySelectorAll(".st-key-curve .js-plotly-plot")];
          const whole = (each) => each.data && each.layout?.xaxis && each.checkVisibility();
          const plot = plots.filter(whole).at(-1);
          return plot && ({what})(plot);
        }}"""
    )
    return handle.json_value()


def points(page: Page) -> int:
    return of_curves(page, "plot => Math.max(...plot.data.map((trace) => trace.x.length))")


def newest(page: Page) -> float:
    """The step of the last point: their number ends to grow where many are thinned out."""
    return of_curves(page, "plot => Math.max(...plot.data.map((trace) => trace.x.at(-1)))")


def seen(page: Page) -> list[float]:
    """The part of the steps that is seen."""
    return of_curves(page, "plot => plot.layout.xaxis.range")


def zoom(page: Page) -> list[float]:
    """Zoom to less than half of the steps by a drag, which a redraw in its midst would end."""
    for _ in range(5):
        first, last = seen(page)
        drag(page, ".st-key-curve .nsewdrag", [(0.2, 0.5), (0.6, 0.5)])
        zoomed = seen(page)
        if zoomed[1] - zoomed[0] < 0.5 * (last - first):
            return zoomed
    raise AssertionError("The curves cannot be zoomed.")


def wait_for_points(page: Page, count: int) -> None:
    until(page, lambda: points(page) >= count)


def wait_for_a_later_point(page: Page, step: float) -> None:
    until(page, lambda: newest(page) > step)


def test_zoom_is_kept_when_a_point_arrives(long_run):
    page, _ = long_run
    wait_for_points(page, 8)
    zoomed = zoom(page)
    # A chart that was on its way before the server knew the zoom may still replace this one.
    wait_for_a_later_point(page, newest(page))
    until(page, lambda: seen(page) == pytest.approx(zoomed))
    for _ in range(2):
        wait_for_a_later_point(page, newest(page))
        assert seen(page) == pytest.approx(zoomed)


def test_a_sweep_is_followed_to_its_table(visit, folder):
    page = visit("/train")
    page.get_by_role("tab", name="A sweep").click()
    page.wait_for_url("**training=sweep")
    settle(page)
    for name, number in (("Epochs", 2), ("Seeds", 2)):
        field = page.get_by_role("spinbutton", name=name).locator("visible=true")
        field.fill(str(number))
        field.press("Enter")
        settle(page)
    expect(
        page.get_by_text("8 trainings. Models of the same shape are trained together.")
    ).to_be_visible()
    page.get_by_role("button", name="Start sweep").click()
    page.wait_for_url(re.compile(r"sweep=\d"))
    says(page, "Done: 8 trainings.")
    cells = page.get_by_test_id("stDataFrame").get_by_role("gridcell", include_hidden=True)
    expect(cells).to_have_count(28)
    expect(cells.filter(has_text="2 of 2")).to_have_count(4)
    cells = cells.all_inner_texts()
    rows = {tuple(row[:2]): row[2:] for row in (cells[k : k + 7] for k in range(0, 28, 7))}
    identifier = re.search(r"sweep=([\w-]+)", page.url)[1]
    checkpoints = [
        Checkpoint.open(path) for path in (folder / "runs/sweeps" / identifier).glob("*/*.s*")
    ]
    for (model, rate), (parameters, error, deviation, finished, _) in rows.items():
        own = [
            one
            for one in checkpoints
            if describe(one.config.model) == model and one.config.learning_rate == float(rate)
        ]
        assert len(own) == 2
        errors = [one.errors[0] for one in own]
        assert int(parameters.replace(",", "")) == own[0].parameters
        assert float(error) == pytest.approx(np.mean(errors), abs=0.006)
        assert float(deviation) == pytest.approx(np.std(errors, ddof=1), abs=0.006)
        assert finished == "2 of 2"
    assert len(rows) == 4
    drawn_errors = chart(page, "sweep-plot").evaluate("plot => plot.data.flatMap(t => [...t.y])")
    assert len(drawn_errors) == 4
    page.get_by_role("link", name="Compare the two best").click()
    page.wait_for_url(re.compile(rf"first={identifier}-\d&second={identifier}-\d"))
    errors = {f"{one.errors[0]:.2f}" for one in checkpoints}
    for name in ("First model", "Second model"):
        shown = settle(page).get_by_label(name).locator("option:checked")
        expect(shown).to_have_text(re.compile(r"[\d.]+ % error"))
        assert re.search(r"([\d.]+) % error", shown.text_content())[1] in errors
    page.go_back()
    says(page, "Done: 8 trainings.")
    page.wait_for_url(f"**sweep={identifier}")
    page.emulate_media(media="print")
    printed = page.locator(".on-paper tbody tr")
    expect(printed).to_have_count(4)
    lines = printed.evaluate_all("rows => rows.map(row => [...row.cells].map(e => e.innerText))")
    for *combination, parameters, error, deviation, finished in lines:
        values = rows[tuple(combination)]
        assert (parameters, float(error), finished) == (values[0], float(values[1]), values[3])
        assert float(deviation) == float(values[2])
    expect(page.get_by_role("button", name="Start sweep")).to_be_hidden()


@pytest.mark.parametrize(
    ("page", "field", "button"),
    [("/train", "B", "Start training"), ("/train?training=sweep", "Seeds", "Start sweep")],
)
def test_a_number_that_the_browser_refuses_starts_no_training(visit, page, field, button):
    """Beyond ±(2⁵³ − 1) it does not send the number: the server still has the one before."""
    page = visit(page)
    number = page.get_by_role("spinbutton", name=field, exact=True)
    begin = page.get_by_role("button", name=button)
    expect(begin).to_be_visible()
    number.fill(str(2**53 + 1))
    number.press("Enter")
    expect(page.get_by_text("Number is above the allowed range")).to_be_visible()
    expect(begin).to_be_hidden()
    number.fill("4")
    number.press("Enter")
    expect(begin).to_be_visible()

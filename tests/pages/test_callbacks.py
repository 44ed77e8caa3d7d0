"""Actions of widgets are done to the end, whenever the browser asks for another run."""

import ast
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest


def page(how, anywhere=False):
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    from pages.widgets.common.callbacks import VISIT, callback, run_callbacks

    state = st.session_state
    state.setdefault("begun", 0)
    if how == "leaves" and state["begun"]:
        state[VISIT] = 1  # as when the visitor opens another page
    run_callbacks()

    def act(number):
        state["begun"] += 1
        if state["begun"] == 1:
            # As the browser does when the visitor uses another widget.
            get_script_run_ctx().script_requests.request_rerun(RerunData())
        state["done"] = number  # the first time, the run is ended here
        if how == "fails":
            raise ValueError("It cannot be done.")
        return (lambda: state.update(rest=number)) if how == "rest" else None

    st.button("Act", on_click=callback(act, 7, anywhere=anywhere))


@pytest.mark.parametrize("how", ["all", "rest"])
def test_an_action_that_a_request_ends_is_begun_again(how):
    app = AppTest.from_function(page, args=(how,)).run()
    app.button[0].click().run()
    state = app.session_state
    assert (state["begun"], state["done"]) == (2, 7)
    assert ("rest" in state) == (how == "rest")
    app.run()
    assert state["begun"] == 2


@pytest.mark.parametrize("anywhere", [False, True])
def test_another_page_finishes_only_what_is_not_about_the_first(anywhere):
    app = AppTest.from_function(page, args=("leaves", anywhere)).run()
    app.button[0].click().run()
    assert app.session_state["begun"] == 1 + anywhere
    assert ("done" in app.session_state) == anywhere


def test_an_action_that_fails_is_not_begun_again():
    app = AppTest.from_function(page, args=("fails",)).run()
    app.button[0].click().run()
    assert len(app.exception) == 1
    assert not app.run().exception


def form():
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    from pages.widgets.common.callbacks import PRESSED, forget_press, pressed, run_callbacks

    run_callbacks()
    state = st.session_state
    if state.get(PRESSED) and not state.get("asked"):
        state["asked"] = True
        get_script_run_ctx().script_requests.request_rerun(RerunData())
    typed = st.text_input("Name", key="name")  # the first time, the run is ended here
    if pressed(st, "Start", "start"):
        state["started"] = [*state.get("started", []), typed]
    forget_press()


def test_a_press_is_known_until_the_page_has_come_to_its_button():
    app = AppTest.from_function(form).run()
    app.text_input[0].set_value("now")
    app.button[0].click().run()
    assert app.session_state["asked"]
    assert app.session_state["started"] == ["now"]
    app.run()
    assert app.session_state["started"] == ["now"]


def at_rest():
    import streamlit as st

    from pages.widgets.common.callbacks import callback
    from pages.widgets.train.cluster import watch

    before = st.session_state.get("done")
    if before is None:
        callback(st.session_state.__setitem__, "done", 7)()
    watch(lambda: st.session_state.get("done"), before)
    st.session_state["seen"] = before


def test_an_action_that_was_left_is_done_by_a_page_at_rest():
    app = AppTest.from_function(at_rest).run()
    assert app.session_state["seen"] == 7


def test_all_callbacks_of_the_pages_are_such():
    """Or texts that Streamlit knows, such as "rerun", and those that do nothing."""
    folder = Path(__file__).parents[2] / "pages"
    values = [
        ast.unparse(keyword.value)
        for path in folder.rglob("*.py")
        for keyword in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(keyword, ast.keyword) and (keyword.arg or "").startswith("on_")
    ]
    known = ("callback(", "press", "'", "lambda: None")
    others = [value for value in values if not value.startswith(known)]
    # Of `st.cache_resource`, and the pad's own argument.
    assert set(others) <= {"drop", "on_draw"}
    assert sum(value.startswith("callback(") for value in values) > 10

"""What a browser reports is data of a stranger; files for the browser are served by name only."""

import base64
import json
from types import SimpleNamespace
from urllib.parse import quote, urlencode

import pytest
from streamlit.testing.v1 import AppTest

from densembed.runs import Run
from pages.widgets.live.live import INPUT, SERVERS
from tests.conftest import is_sentence
from tests.pages.conftest import get, live, report, sample, settle, views_own, visit

EMPTY = {"link": "", "pixels": "", "label": None, "order": 0}
JUNK = [
    None, 7, "model=small", [], {}, {"link": 7}, {"link": None, "pixels": "", "label": None},
    *({**EMPTY, "pixels": pixels} for pixels in [7, [1], "%", "ü", "A" * 3, "A" * 10**6, {}]),
    *({**EMPTY, "label": label} for label in [7, [], {"a": 1}, "x" * 10**5]),
    *({**EMPTY, "link": link} for link in [
        "model", "model=", "=&=", "%ff%00=%ff", "a;b&model=\0", "model=" + "x" * 10**5,
        "model=../../etc/passwd", "model=upload-0123", "first=gone", "models=9", "models=x",
        "models=-1", "by=x", "by=epoch&epoch=x", "step=nan", "fraction=inf", "field=[]",
        "open=settings", "more=export&step=" + "9" * 5000, "from=upload", "from=draw", "hide=x",
        "embed=true&embed_options=dark_theme", "printed=three", "\ud800=\udfff", "class=\ud800",
        "show=class&for=x&more=export", "&".join(f"k{k}=v" for k in range(5000)),
    ]),
]  # fmt: skip


@pytest.mark.parametrize("view", ["explore", "compare"])
def test_a_page_shows_whatever_the_browser_reports(small_gallery, view):
    app = visit(view)
    good = base64.b64encode(sample().numpy().tobytes()).decode()
    for junk in JUNK:
        for pixels in ("", good) if isinstance(junk, dict) and junk.get("pixels") == "" else (0,):
            app.session_state[f"{view}-report"] = {**junk, "pixels": pixels} if pixels else junk
            settle(app.run())
            assert list(live(app)["models"]) == ["small"], junk


def keep() -> None:
    """What Streamlit calls when a view reports."""

    from pages.widgets.live import live

    live._keep("explore")


def kept(reported, **link: str) -> AppTest:
    app = AppTest.from_function(keep)
    app.session_state["explore"] = SimpleNamespace(report=reported)
    for key, value in link.items():
        app.query_params[key] = value
    return settle(app.run())


def test_a_report_that_was_on_its_way_does_not_bring_a_removed_file_back():
    link = "model=upload-0123456789ab&class=3"
    app = kept({**EMPTY, "link": link})
    assert set(app.query_params) == {"class"}


def test_a_report_from_before_the_page_changed_its_link_is_not_taken():
    app = kept({**EMPTY, "link": "class=5"}, **{"class": "3"})
    assert app.query_params["class"] in ("5", ["5"])
    app.session_state["order"] = 1  # an uploaded picture, say
    before = settle(app.run()).session_state["explore-report"]
    assert before["link"] == "class=5"


def test_what_the_visitor_changed_meanwhile_is_kept():
    """A class that was chosen just after a model was uploaded was taken back."""
    app = kept({**EMPTY, "link": "class=5&show=overlay"})
    app.session_state["order"] = 1
    app.query_params["model"] = "other"  # of the page, whose link the view has not heard of
    app.session_state["explore"] = SimpleNamespace(
        report={**EMPTY, "link": "class=3&model=small&contours=true"}
    )
    settle(app.run())
    assert app.session_state["order"] == 2
    expected = {"class": "3", "contours": "true", "model": "other"}
    assert app.session_state["followed"] == expected
    assert app.session_state["explore-report"]["link"] == "class=5&show=overlay"
    # The view may have reported where it opened before this report arrives.
    late = app.session_state["explore"]
    app.session_state["explore"] = SimpleNamespace(
        report={**EMPTY, "link": "class=5&show=overlay&model=other", "order": 2}
    )
    settle(app.run())
    assert "followed" not in app.session_state
    app.session_state["explore"] = late
    settle(app.run())
    assert app.session_state["order"] == 3
    assert app.session_state["followed"] == expected


@pytest.mark.parametrize(("signals", "stays"), [(False, False), (True, True)])
def test_a_picture_that_was_removed_before_its_view_reported_it_is_gone(signals, stays):
    """The report came after ×, and brought the picture back. A signal is the visitor's text."""
    app = kept({**EMPTY, "link": "from=upload"})
    app.session_state["order"] = 1  # × was pressed
    app.session_state["signals"] = signals
    app.session_state["explore"] = SimpleNamespace(
        report={**EMPTY, "link": "from=upload&ink=eJz7&class=3"}
    )
    followed = settle(app.run()).session_state["followed"]
    assert followed.pop("class") == "3"
    assert ("ink" in followed) == stays


def test_a_removed_picture_is_not_taken_along_before_the_view_has_reported(small_gallery):
    app = visit("explore", **{"from": "upload", "ink": "eJz7"})
    assert app.session_state["input"]["ink"] == "eJz7"
    app.session_state["followed"] = {"from": "upload"}  # × was pressed
    assert "ink" not in settle(app.run()).session_state["input"]


def test_the_page_s_link_stays_until_the_view_has_reported_it(small_gallery):
    """The browser sends the link of before with whatever it had already on its way."""
    app = visit("explore", **{"class": "3"})
    order = live(app)["order"]
    follow = AppTest.from_function(followed)
    for key in ("order", "followed"):
        follow.session_state[key] = app.session_state[key]
    for key in ("order", "followed"):
        app.session_state[key] = settle(follow.run()).session_state[key]
    app.query_params["class"] = "3"
    app.query_params["tour"] = "2"  # a parameter of the page, which is new
    data = live(settle(app.run()))
    assert (data["link"], data["order"]) == ("class=7", order + 1)
    assert app.query_params["tour"] in ("2", ["2"])


def followed() -> None:
    """What a page does when it changes its link."""
    from pages.widgets.live.live import follow_link

    follow_link(lambda link: link | {"class": "7"})


def test_the_link_of_another_page_is_not_put_back():
    """Even if the next request ends the first run of the page before the view is shown."""
    app = AppTest.from_function(begun)
    app.session_state["routed"] = True
    app.session_state["page"] = "What does this network look at?"
    of_the_last = ("followed", "explore-report", "compare-report")
    for key in of_the_last:
        app.session_state[key] = {"link": "model=linear"}
    settle(app.run())
    assert not [key for key in of_the_last if key in app.session_state]


def begun() -> None:
    from pages.widgets.common.page import begin

    begin("Where do two networks differ?")


@pytest.mark.parametrize("junk", JUNK)
def test_the_link_takes_whatever_the_browser_reports(junk):
    assert kept(junk, tour="2").query_params["tour"] in ("2", ["2"])


def test_a_report_replaces_the_link_but_for_the_server_s_own_parameters():
    link = "class=3&show=overlay&hide=menu"
    app = kept({**EMPTY, "link": link}, tour="2", printed="one-column", step="5")
    assert {key: "".join(value) for key, value in dict(app.query_params).items()} == {
        "tour": "2", "printed": "one-column", "class": "3", "show": "overlay", "hide": "menu",
    }  # fmt: skip
    assert app.session_state["input"] == {"class": "3"}  # taken along to the other view


def test_the_input_is_taken_along_to_the_other_view(small_gallery):
    app = visit("explore")
    app.session_state["input"] = {"class": "3", "turn": "30"}
    app.switch_page("pages/compare.py")
    app.query_params["turn"] = "5"
    data = live(settle(app.run()))
    assert data["link"] == "turn=5&class=3"  # the link takes precedence


def test_a_detail_is_taken_along_to_the_other_view(small_gallery):
    for link, name, detail in (
        ("more=classes", "compare", "open=classes"),
        ("more=density&density=3", "compare", ""),
        ("more=density&density=3", "explore", "more=density&density=3"),
    ):
        before = kept({**EMPTY, "link": link}).session_state
        app = visit("train")
        for key in ("explore-own", "detail"):
            app.session_state[key] = before[key]
        app.switch_page(f"pages/{name}.py")
        assert live(settle(app.run()))["link"] == detail


def test_a_report_ends_with_the_visit(small_gallery):
    """A link of another page opens the view, whose last report is of another link."""
    app = report(visit(), "explore", sample(), "7", more="export")
    assert app.get("download_button")
    for page in ("train", "explore"):
        app.switch_page(f"pages/{page}.py")
        settle(app.run())
    assert not app.get("download_button")


def test_parameters_are_the_view_s_or_the_server_s():
    """A parameter of the page would be an unknown one in the view, and the other way round."""
    own = views_own()
    assert {"model", "class", "step", "show"} <= own
    assert set(INPUT) <= own
    assert not own & set(SERVERS)


# The files that the view loads


def test_models_and_test_images_are_where_the_page_says(small_gallery, trained, digits):
    (model,) = live(visit())["models"].values()
    answer = get(model["url"])
    assert answer.body == (small_gallery / "small.safetensors").read_bytes()
    assert "immutable" in answer.headers["cache-control"]
    assert "cache-control" not in get(model["samples"]).headers
    facts = json.loads(get(model["samples"]).body)
    assert facts["title"] == digits.title
    assert facts["classes"] == trained.header.classes
    assert facts["shape"] == [1, 28, 28]
    for label in range(10):
        images = digits.test.images[digits.test.labels == label]
        assert facts["counts"][label] == len(images)
        answer = get(f"{model['samples']}&label={label}")
        assert answer.body == images.numpy().tobytes()
        assert answer.headers["content-type"] == "application/octet-stream"


def test_another_version_of_a_model_has_another_url(small_gallery, mnist_model):
    def url() -> str:
        return live(visit())["models"]["small"]["url"]

    before = url()
    assert url() == before
    mnist_model.save(small_gallery / "small.safetensors")
    assert url() != before


def test_a_run_is_served_by_its_identifier(small_gallery, trained):
    run = Run.create(trained.config)
    assert get(f"/checkpoints/{run.identifier}.safetensors").status == 404
    trained.save(run.checkpoint_path)
    answer = get(f"/checkpoints/{run.identifier}.safetensors")
    assert answer.body == run.checkpoint_path.read_bytes()


@pytest.mark.parametrize(
    "key",
    ["gone", "..%2Fsmall", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..", "small%00", "%ff", "*", "sm*",
     "small.safetensors", "x" * 5000, "upload-0123", "folder:%2Fetc"],
)  # fmt: skip
@pytest.mark.parametrize(
    "place", ["/checkpoints/{}.safetensors", "/samples/of-model/{}", "/samples/of-data/{}"]
)
def test_other_names_are_no_files(small_gallery, runs_root, place, key):
    (small_gallery.parent / "small.safetensors").write_bytes(b"secret")
    answer = get(place.format(key))
    assert answer.status == 404
    assert answer.text == "Not Found" or is_sentence(answer.text)


@pytest.mark.parametrize("label", ["10", "-1", "x", "", "1.0", "²", "٣", "9" * 5000, "0x1"])
def test_labels_that_no_class_has(small_gallery, label):
    answer = get(f"/samples/of-model/small?{urlencode({'label': label})}")
    assert (answer.status, answer.text) == (404, "There is no such class.")


@pytest.mark.parametrize("name", ["mnist", "none", "no-signals"])
def test_missing_test_images_are_a_sentence_and_no_error(small_gallery, name):
    """Browsers write the failure of a request to their console, whatever the page makes of it."""
    answer = get(f"/samples/of-data/{name}")
    assert answer.status == 200
    assert is_sentence(json.loads(answer.text)["missing"])
    assert get(f"/samples/of-data/{name}?class=").status == 204
    assert get(f"/samples/of-model/small?{urlencode({'class': 'zzz'})}").status == 204


def test_a_data_set_has_its_own_address_and_a_folder_none(small_gallery, digits, tmp_path):
    assert json.loads(get("/samples/of-data/digits").body)["title"] == digits.title
    assert get(f"/samples/of-data/{quote(f'folder:{tmp_path}')}").status == 404

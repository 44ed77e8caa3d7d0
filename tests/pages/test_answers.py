"""What the browser asked for reaches it, even if the page's script runs again at that moment."""

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from pages.widgets.common.answers import ANSWERS, keep_answers


def waiting() -> ForwardMsgQueue:
    """A queue with an element, the start of a run, and an answer of each kind."""
    queue = ForwardMsgQueue()
    for kind in ("delta", "new_session", *ANSWERS):
        message = ForwardMsg()
        getattr(message, kind).SetInParent()
        queue.enqueue(message)
    return queue


def kinds(queue: ForwardMsgQueue) -> list[str]:
    return [str(message.WhichOneof("type")) for message in queue.flush()]


@pytest.fixture
def kept(monkeypatch):
    monkeypatch.setattr(ForwardMsgQueue, "clear", ForwardMsgQueue.clear)  # as it was, afterwards
    keep_answers()
    keep_answers()  # again, as where the server is imported twice


@pytest.mark.parametrize("fragments", [None, ["a fragment"]])
def test_answers_outlive_a_new_run(kept, fragments):
    queue = waiting()
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=fragments)
    assert kinds(queue)[-3:] == ["new_session", *ANSWERS]


def test_nothing_outlives_the_session(kept):
    queue = waiting()
    queue.clear()
    assert kinds(queue) == []

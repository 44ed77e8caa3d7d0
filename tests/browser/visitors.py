"""Visitors of the app whose browsers are elsewhere: sessions of the server, without a page.

A view computes in its visitor's browser, so that a tab on this machine would take time from the
others that a real visitor does not. The server hears of a real one what it hears of these.
"""

import base64
import contextlib
import json
import threading
from collections.abc import Iterator
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

from densembed.data import load_dataset

EVERY = 2.0
"""Seconds from one change of class to the next."""


class Visitor:
    """A session that shows Explore and reports where its view comes to rest."""

    def __init__(self, server: str) -> None:
        address = f"{server.replace('http', 'ws', 1)}/_stcore/stream"
        self.socket: ClientConnection = connect(address, subprotocols=["streamlit"], max_size=None)
        self.widget = ""
        self.class_ = 7
        self._run(BackMsg())

    def change(self) -> None:
        """Choose the next class."""
        self.class_ = (self.class_ + 1) % 10
        images = load_dataset("digits").test
        pixels = images.images[(images.labels == self.class_).nonzero()[0, 0]]
        link = {"class": self.class_} if self.class_ != 7 else {}
        report = {
            "link": urlencode(link),
            "pixels": base64.b64encode(pixels.numpy().tobytes()).decode(),
            "label": str(self.class_),
        }
        message = BackMsg()
        state = message.rerun_script.widget_states.widgets.add(id=self.widget)
        state.json_value = json.dumps({"report": report})
        message.rerun_script.query_string = urlencode(link)
        self._run(message)

    def _run(self, message: BackMsg) -> None:
        """Run the page's script to its end."""
        message.rerun_script.SetInParent()
        self.socket.send(message.SerializeToString())
        while True:
            answer = ForwardMsg()
            answer.ParseFromString(self.socket.recv(timeout=60))
            element = answer.delta.new_element
            if element.HasField("bidi_component") and "-explore" in element.bidi_component.id:
                self.widget = element.bidi_component.id
            if answer.WhichOneof("type") == "script_finished":
                return


@contextlib.contextmanager
def visitors(server: str, count: int) -> Iterator[list[Visitor]]:
    """Some visitors, who close their pages at the end."""
    with contextlib.ExitStack() as stack:
        some = [Visitor(server) for _ in range(count)]
        for each in some:
            stack.callback(each.socket.close)
        yield some


@contextlib.contextmanager
def busy_visitors(server: str, count: int) -> Iterator[None]:
    """Visitors who change the class again and again."""
    done = threading.Event()

    def change(visitor: Visitor, first: float) -> None:
        done.wait(first)
        while not done.is_set():
            visitor.change()
            done.wait(EVERY)

    with visitors(server, count) as some:
        threads = [
            threading.Thread(target=change, args=(each, k * EVERY / count))
            for k, each in enumerate(some)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            done.set()
            for thread in threads:
                thread.join()

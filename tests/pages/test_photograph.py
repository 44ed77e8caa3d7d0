"""The uploaded photograph on Explore: every digit is a choice, and the page follows it."""

import numpy as np

from densembed.data.photograph import read_photograph
from pages.widgets.photograph import photograph
from tests.data.test_images import drawn, saved
from tests.pages.test_explore import pixels_sent, settle, upload, visit

PAGE = saved(1 - np.hstack([drawn(2), drawn(6), drawn(0)]))


def wished(app, **changes):
    """What the browser would send, kept as the callback keeps it."""
    app.session_state["photograph-wish"] = photograph.NO_WISH | changes
    return settle(app.run())


def test_every_digit_of_a_photograph_can_be_opened(small_gallery):
    app = upload(visit(), PAGE)
    digits = read_photograph(PAGE).digits
    assert len(digits) == 3
    assert pixels_sent(app) == digits[0].pixels.numpy().tobytes()
    assert pixels_sent(wished(app, digit=2)) == digits[2].pixels.numpy().tobytes()
    framed = read_photograph(PAGE, frame=(0.34, 0, 0.66, 1)).digits
    assert len(framed) == 1
    sent = pixels_sent(wished(app, frame=(0.34, 0, 0.66, 1)))
    assert sent == framed[0].pixels.numpy().tobytes()
    assert not [*app.error, *app.exception]

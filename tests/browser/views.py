"""What the tests of Explore and Compare read from a view and compute in Python."""

import base64
import contextlib
import io
import re
from urllib.parse import parse_qsl

import numpy as np
import torch
from PIL import Image
from playwright.sync_api import Locator, Page

from densembed.data.codec import from_text
from densembed.data.decode import ImageError
from densembed.fields.agreement import align_steps
from densembed.fields.field import view
from tests.browser.conftest import (
    numbers,
    until,
)
from tests.browser.gallery import (
    FIELD,
    MOVING,
    OF,
)


def parameters(link: str) -> dict:
    """Those of a link; a picture as its pixels, for which there are several texts."""
    values = dict(parse_qsl(link))
    with contextlib.suppress(ImageError, KeyError):
        values["ink"] = from_text(values["ink"], (1, 28, 28)).tolist()
    return values


def rests(page: Page, link: str) -> None:
    """Wait until the view has written this link."""
    wanted = parameters(link)
    try:
        until(page, lambda: parameters(page.url.partition("#")[2].partition("?")[2]) == wanted)
    except AssertionError:
        assert page.url.partition("?")[2] == link
        raise


def pressed(page: Page, group: str) -> Locator:
    return page.get_by_role("group", name=group, exact=True).locator("[aria-pressed=true]")


def ends(page: Page, figure: str) -> tuple[float, float]:
    texts = page.locator(f"{figure} .ticks span").all_text_contents()
    ticks = [float(re.sub("[≤≥ ]", "", text).replace("−", "-")) for text in texts]
    return ticks[0], ticks[-1]


def field_of(pixels: torch.Tensor, key: str = MOVING, index: int = -1) -> np.ndarray:
    return view(OF[key], pixels, [index]).fields[0].sum(0)


def decoded(image: Locator) -> np.ndarray:
    """The first channel of a picture whose URL contains it, or of a canvas."""
    url = image.evaluate("image => image.toDataURL?.() ?? image.getAttribute('src')")
    content = url.partition(",")[2]
    return np.array(Image.open(io.BytesIO(base64.b64decode(content))).convert("RGB"))[..., 0]


def alike(shown: np.ndarray, pixels: np.ndarray) -> bool:
    """The same up to rounding, which may differ by one for a few pixels."""
    if shown.shape != pixels.shape:
        return False
    off = abs(np.rint(255 * shown) - pixels)
    return bool(off.max() <= 1 and (off > 0).mean() < 0.02)


def drawn(page: Page) -> torch.Tensor:
    """The input that the drawing became, from the small picture beside the pad."""
    return torch.from_numpy(decoded(page.locator(".draw_pad figure canvas")).copy())[None]


def follows(page: Page) -> torch.Tensor:
    """Wait until the field is that of the drawing, which has ink."""
    pixels = torch.zeros(1, 28, 28, dtype=torch.uint8)

    def there() -> bool:
        nonlocal pixels
        pixels = drawn(page)
        shown = numbers(page, FIELD)
        return bool(pixels.any()) and np.allclose(shown, field_of(pixels), 1e-4, 1e-5)

    until(page, there)
    return pixels


PAD = ".draw_pad .pad > canvas"


def index_at(key: str, place: float, unit: str = "epoch") -> int:
    return int(np.searchsorted(align_steps(OF[key], OF[key].steps, unit), place, "right")) - 1

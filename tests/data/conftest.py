import pytest

from tests.data.folders import CLASSES, picture


@pytest.fixture
def photos(tmp_path):
    """Ten pictures a class, of one size, in no parts."""
    root = tmp_path / "photos"
    for k, name in enumerate(CLASSES):
        for n in range(10):
            picture(root / name / f"{n}.png", seed=10 * k + n)
    return root

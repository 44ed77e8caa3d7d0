"""Puts the pages and the checkpoints into the wheel, as `densembed/app`."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
APP = ("app.py", "pages", ".streamlit", "checkpoints/paper")


class BuildWithApp(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:  # the clone has them
            return
        folder = Path(self.build_lib) / "densembed/app"
        shutil.rmtree(folder, ignore_errors=True)
        for name in APP:
            source, target = ROOT / name, folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, target)


setup(cmdclass={"build_py": BuildWithApp})

"""What pip calls to build the wheel from a checkout (PEP 517): maturin, with the `quell` command built and packed, too.

`./x release` has built the command itself, and calls maturin without this.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import maturin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PACKAGE = Path(__file__).resolve().parent
# What maturin installs in addition to the package.
DATA = PACKAGE / "quell.data"


def command(arguments: list[str]) -> Path:
    """Builds the command, with the profile that maturin is asked to build with, and returns its path."""
    profile = arguments[arguments.index("--profile") + 1] if "--profile" in arguments else "release"
    words = ["cargo", "build", "--locked", "--profile", profile, "--package", "quell-cli"]
    if shutil.which("cargo") is None:
        raise SystemExit("error: quell is built by cargo, which is not here: install Rust (rustup.rs), or a wheel")
    ran = subprocess.run(
        [*words, "--message-format=json-render-diagnostics"], cwd=PACKAGE.parent, stdout=subprocess.PIPE, check=True
    )
    built = [json.loads(line).get("executable") for line in ran.stdout.splitlines()]
    return Path(next(path for path in built if path))


@contextlib.contextmanager
def with_command(settings: Mapping[str, Any] | None) -> Iterator[None]:
    """Has the command where maturin packs it, in the package's folder."""
    built = command(maturin.get_maturin_pep517_args(settings))
    with in_package():
        shutil.copy2(built, DATA / "scripts/quell")
        yield


@contextlib.contextmanager
def in_package() -> Iterator[None]:
    """In the package's folder, whose pyproject.toml maturin reads, with the folder that it names."""
    before = Path.cwd()
    os.chdir(PACKAGE)
    (DATA / "scripts").mkdir(parents=True)
    try:
        yield
    finally:
        shutil.rmtree(DATA)
        os.chdir(before)


def get_requires_for_build_wheel(config_settings: Mapping[str, Any] | None = None) -> list[str]:
    """What the build of a wheel needs in addition to maturin."""
    return maturin.get_requires_for_build_wheel(config_settings)


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(folder: str, config_settings: Mapping[str, Any] | None = None) -> str:
    """The package's metadata."""
    folder = str(Path(folder).resolve())
    with in_package():
        return maturin.prepare_metadata_for_build_wheel(folder, config_settings)


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(folder: str, config_settings: Mapping[str, Any] | None = None, metadata: str | None = None) -> str:
    """The wheel."""
    folder = str(Path(folder).resolve())
    with with_command(config_settings):
        return maturin.build_wheel(folder, config_settings, metadata)


def build_editable(folder: str, config_settings: Mapping[str, Any] | None = None, metadata: str | None = None) -> str:
    """A wheel that uses the package where it is."""
    folder = str(Path(folder).resolve())
    with with_command(config_settings):
        return maturin.build_editable(folder, config_settings, metadata)


def build_sdist(folder: str, config_settings: Mapping[str, Any] | None = None) -> str:
    """The package's sources."""
    folder = str(Path(folder).resolve())
    with in_package():
        return maturin.build_sdist(folder, config_settings)

"""The corpus, converted once for all tests, with the kustomize of the tests whatever is on PATH."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from controlplane import build
from corpus.tree import Corpus, convert

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def corpus(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Return the corpus before and after a conversion."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPU2DRA_KUSTOMIZE", str(build.ensure("kustomize-5") / "kustomize"))
        return convert(shared / "corpus", tmp_path_factory.mktemp("corpus") / "tree")

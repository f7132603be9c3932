"""The filters on public manifests: they make of each file what `convert` makes, and a second pass changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from gpu2dra import Keep, Options
from gpu2dra_migrate.filters.function import resource_list
from gpu2dra_migrate.filters.resource_list import convert_list
from gpu2dra_migrate.filters.stream import convert_stream
from gpu2dra_migrate.manifest import convert, objects
from gpu2dra_migrate.search.discover import may_hold_legacy
from gpu2dra_migrate.text.emit import documents_text

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def converting(shared: Path) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """Yield the text of each file that converts, with its objects before and after."""
    for path in sorted((shared / "corpus").rglob("*")):
        if path.suffix not in (".yaml", ".yml", ".json") or not path.is_file():
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        done = convert(text, Options()) if may_hold_legacy(text) else None
        if done and done.text is not None:
            yield text, _maps(objects(text)), _maps([*done.beside, *objects(done.text)])


def _maps(found: list[Any]) -> list[Any]:
    return [obj for obj in found if isinstance(obj, dict)]


def test_both_filters_make_what_convert_makes(shared: Path, record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    for text, before, after in converting(shared):
        stream = convert_stream(text, Options(), [Keep.NONE]).text
        assert _maps(objects(stream)) == after, text
        assert convert_stream(stream, Options(), [Keep.NONE]).text == stream
        listed = documents_text([{"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": before}])
        (found,) = objects(convert_list(listed, *resource_list(listed), Options()).text)
        assert found["items"] == after, text
        counts["files"] += 1
    assert counts["files"] > 0
    record_property("figures", f"{counts['files']} files through render-filter and krm-function as through convert")

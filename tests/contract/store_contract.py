"""What every store promises.  A test module inherits `StoreContract` and gives a fixture `store` and one `prefix`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow.fs
import pytest

from pipeline.core.errors import StorageNotFoundError, UnreadableError
from pipeline.storage.store import Store, probe

__all__ = ["StoreContract"]


class StoreContract:
    """`prefix` is an empty place that ends in a slash; `store` is the store it belongs to."""

    def test_an_object_is_read_as_it_was_put(self, store: Store, prefix: str) -> None:
        data = bytes(range(256)) * 20
        store.put(prefix + "a.bin", data)
        assert store.get(prefix + "a.bin") == data

    def test_put_overwrites(self, store: Store, prefix: str) -> None:
        store.put(prefix + "report.json", b"old")
        store.put(prefix + "report.json", b"new")
        assert store.get(prefix + "report.json") == b"new"

    def test_an_empty_object_is_an_object(self, store: Store, prefix: str) -> None:
        store.put(prefix + "empty", b"")
        info = store.head(prefix + "empty")
        assert info is not None
        assert info.size_bytes == 0
        assert store.get(prefix + "empty") == b""

    def test_the_first_attempt_stands_and_the_second_learns_that_it_lost(self, store: Store, prefix: str) -> None:
        assert store.put_if_absent(prefix + "part", b"first", attempt="one")
        assert not store.put_if_absent(prefix + "part", b"second", attempt="two")
        assert store.get(prefix + "part") == b"first"

    def test_the_same_attempt_may_ask_again(self, store: Store, prefix: str) -> None:
        assert store.put_if_absent(prefix + "part", b"first", attempt="one")
        assert store.put_if_absent(prefix + "part", b"first", attempt="one")

    def test_a_report_is_no_attempt(self, store: Store, prefix: str) -> None:
        store.put(prefix + "part", b"something else")
        assert not store.put_if_absent(prefix + "part", b"first", attempt="one")
        assert store.get(prefix + "part") == b"something else"

    def test_of_racing_attempts_exactly_one_wins_and_its_bytes_stand(self, store: Store, prefix: str) -> None:
        attempts = [f"attempt-{number}" for number in range(6)]

        def race(attempt: str) -> bool:
            return store.put_if_absent(prefix + "race", attempt.encode() * 1000, attempt=attempt)

        with ThreadPoolExecutor(len(attempts)) as pool:
            won = list(pool.map(race, attempts))
        assert sum(won) == 1
        assert store.get(prefix + "race") == attempts[won.index(True)].encode() * 1000

    def test_head_of_nothing_is_none(self, store: Store, prefix: str) -> None:
        assert store.head(prefix + "nothing") is None

    def test_get_of_nothing_names_it(self, store: Store, prefix: str) -> None:
        with pytest.raises(StorageNotFoundError, match="nothing"):
            store.get(prefix + "nothing")

    def test_open_of_nothing_is_not_found_but_unreadable_if_it_was_planned(self, store: Store, prefix: str) -> None:
        with pytest.raises(StorageNotFoundError):
            store.open_input(prefix + "nothing")
        with pytest.raises(UnreadableError, match="nothing"):
            store.open_input(prefix + "nothing", etag="0")

    def test_list_is_recursive_sorted_and_keeps_to_its_folder(self, store: Store, prefix: str) -> None:
        for name in ("docs/b.txt", "docs/a.txt", "docs/sub/c.txt", "docs2/d.txt", "docs.txt"):
            store.put(prefix + name, name.encode())
        for asked in ("docs", "docs/"):
            found = store.list(prefix + asked)
            assert [store.get(info.uri) for info in found] == [b"docs/a.txt", b"docs/b.txt", b"docs/sub/c.txt"]
            assert [info.size_bytes for info in found] == [10, 10, 14]
            assert found == sorted(found, key=lambda info: info.uri)

    def test_list_of_one_object_is_that_object(self, store: Store, prefix: str) -> None:
        store.put(prefix + "a.txt", b"a")
        assert [info.etag for info in store.list(prefix + "a.txt")] == [_head(store, prefix + "a.txt")]

    def test_list_of_nothing_is_empty(self, store: Store, prefix: str) -> None:
        assert store.list(prefix + "nothing/") == []
        assert store.list(prefix + "nothing/*.txt") == []

    @pytest.mark.parametrize(
        ("pattern", "expected"),
        [
            ("*.txt", [b"a1.txt", b"b1.txt"]),
            ("a?.txt", [b"a1.txt"]),
            ("[ab]1.*", [b"a1.md", b"a1.txt", b"b1.txt"]),
            ("**/*.txt", [b"a1.txt", b"b1.txt", b"sub/c1.txt", b"sub/x/d1.txt"]),
            ("su*", [b"sub/c1.txt", b"sub/x/d1.txt"]),
        ],
    )
    def test_list_takes_globs(self, store: Store, prefix: str, pattern: str, expected: list[bytes]) -> None:
        for name in ("a1.txt", "b1.txt", "a1.md", "sub/c1.txt", "sub/x/d1.txt"):
            store.put(prefix + name, name.encode())
        assert [store.get(info.uri) for info in store.list(prefix + pattern)] == expected

    @pytest.mark.parametrize("name", ["a[1]", "a*", "a?", "{a}"])
    def test_a_prefix_is_listed_as_it_is_written(self, store: Store, prefix: str, name: str) -> None:
        """Fails when a prefix is read as a pattern: parts would stand that no run finds."""
        for folder in (name, "a1", f"{name}2"):
            store.put(f"{prefix}{folder}/parts/b.txt", folder.encode())
        assert [store.get(info.uri) for info in store.list_prefix(f"{prefix}{name}/")] == [name.encode()]
        assert [store.get(info.uri) for info in store.list_prefix(f"{prefix}{name}/parts/")] == [name.encode()]
        assert store.list_prefix(f"{prefix}nothing/") == []

    def test_the_etag_of_list_head_and_open_agree(self, store: Store, prefix: str) -> None:
        store.put(prefix + "docs/a.txt", b"a")
        [listed] = store.list(prefix + "docs/")
        assert _head(store, prefix + "docs/a.txt") == listed.etag
        with store.open_input(listed.uri, etag=listed.etag) as file:
            assert file.read() == b"a"

    def test_other_content_has_another_etag_and_is_refused_by_the_old_one(self, store: Store, prefix: str) -> None:
        store.put(prefix + "a.txt", b"a")
        before = _head(store, prefix + "a.txt")
        store.put(prefix + "a.txt", b"bb")
        assert _head(store, prefix + "a.txt") != before
        with pytest.raises(UnreadableError, match="changed"):
            store.open_input(prefix + "a.txt", etag=before)

    def test_an_input_can_be_read_anywhere(self, store: Store, prefix: str) -> None:
        data = bytes(range(256)) * 4
        store.put(prefix + "a.bin", data)
        with store.open_input(prefix + "a.bin") as file:
            assert file.seekable()
            assert file.read(10) == data[:10]
            assert file.seek(-8, 2) == len(data) - 8
            assert file.read() == data[-8:]
            assert file.read(5) == b""
            file.seek(100)
            assert file.tell() == 100
            assert file.read(3) == data[100:103]

    @pytest.mark.parametrize(
        "name", ["with space.txt", "ünïcode-日本.txt", "a+b=c&d.txt", "per%20cent.txt", "q?uery#x"]
    )
    def test_odd_names_come_back(self, store: Store, prefix: str, name: str) -> None:
        store.put(prefix + "odd/" + name, b"odd")
        [info] = store.list(prefix + "odd/")
        assert info.uri.endswith("odd/" + name)
        assert store.get(info.uri) == b"odd"

    def test_a_prefix_can_be_probed_again_and_again(self, store: Store, prefix: str) -> None:
        assert [probe(store, prefix) for _ in range(3)] == [True, True, True]
        assert [info.uri.rsplit("/", 2)[-2:] for info in store.list(prefix)] == [["_run", "probe"]]

    def test_arrow_reads_the_same_bytes(self, store: Store, prefix: str) -> None:
        store.put(prefix + "a.bin", b"for arrow")
        with store.filesystem().open_input_file(store.path(prefix + "a.bin")) as file:
            assert file.read() == b"for arrow"
        info = store.filesystem().get_file_info(store.path(prefix + "a.bin"))
        assert info.type == pyarrow.fs.FileType.File


def _head(store: Store, uri: str) -> str:
    info = store.head(uri)
    assert info is not None
    return info.etag

"""Compiling, and what the package imports."""

import pkgutil
import subprocess
import sys

import numba
import pytest

from migrate import runtime
from semisync.common.compiled import jit


def test_every_name_is_there_and_in_order():
    assert runtime.__all__ == sorted(runtime.__all__)
    for name in runtime.__all__:
        assert getattr(runtime, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        runtime.no_such_name  # noqa: B018


def test_no_name_is_that_of_a_module_which_an_import_puts_in_its_place():
    modules = {one.name for one in pkgutil.iter_modules(runtime.__path__)}
    assert not modules.intersection(runtime.__all__)


def test_numba_is_imported_when_strings_are_used_and_tensorflow_never():
    script = (
        "import sys; from migrate import runtime; assert 'numba' not in sys.modules; "
        "runtime.Strings; assert 'numba' in sys.modules; assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_a_function_is_compiled_where_no_folder_can_keep_it(monkeypatch):
    njit = numba.njit

    def without_folders(function, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function")
        return njit(function, **options)

    monkeypatch.setattr(numba, "njit", without_folders)

    def twice(number):
        return 2 * number

    assert jit.compiled(twice)(21) == 42


def test_what_is_kept_has_the_digest_of_all_sources_in_its_name():
    def one(number):
        return number

    assert jit.compiled(one).py_func.__qualname__.endswith(jit._DIGEST)


def test_words_are_loaded_at_any_byte():
    import numpy as np

    @numba.njit
    def loaded(data, at):
        start = jit.address(data) + at
        return jit.load64(start), jit.load32(start), jit.load8(start)

    data = np.arange(16, dtype=np.uint8)
    for at in range(8):
        wide, narrow, least = loaded(data, at)
        assert wide == int.from_bytes(bytes(range(at, at + 8)), "little")
        assert narrow == int.from_bytes(bytes(range(at, at + 4)), "little")
        assert least == at

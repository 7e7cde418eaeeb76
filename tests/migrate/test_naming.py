"""A table may have any name that a variable has."""

import pytest
from torch import nn

from migrate.manifest.naming import table_name


@pytest.mark.parametrize("name", ["items", "values", "training", "user.v2/items", "user"])
def test_a_table_has_a_name_that_a_module_dict_takes(name):
    nn.ModuleDict({table_name(name): nn.Identity()})


def test_every_name_that_a_module_dict_has_for_itself_is_known():
    own = {name for name in dir(nn.ModuleDict()) if not name.startswith("__")}
    assert [name for name in sorted(own) if table_name(name) == name] == []


def test_a_name_that_is_free_stays():
    assert table_name("model/user") == "model/user"

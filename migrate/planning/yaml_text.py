"""Plain data as YAML, and back; a field that comes twice is an error."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict

from semisync.common.errors import BadInput
from semisync.common.extras import extra
from semisync.common.sentences import words_of

_DATE = "tag:yaml.org,2002:timestamp"


def dump(data: Dict[str, Any]) -> str:
    """`data` as YAML, in its order."""
    import yaml

    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)


def load(text: str, where: str) -> Any:
    """Parses YAML, in which a date is text.

    Raises:
        BadInput: it is malformed, or has a field twice, of which yaml.safe_load keeps the last; the
            message begins with `where`.
    """
    with extra("report", f"to read {where}"):
        import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {
            first: [resolver for resolver in resolvers if resolver[0] != _DATE]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def construct_mapping(self, node: Any, deep: bool = False) -> Dict[Any, Any]:
            names = Counter(key.value for key, _ in node.value if isinstance(key.value, str))
            for name, count in names.items():
                if count > 1:
                    raise yaml.YAMLError(f"the field {name!r} comes twice{node.start_mark}")
            mapping: Dict[Any, Any] = super().construct_mapping(node, deep)
            return mapping

    try:
        return yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadInput(f"{where} is not YAML: {words_of(error)}") from error

"""Plain data as YAML, and back; a field that comes twice is an error.

An alias repeats its anchor, and ten lines of them repeat it a billion times: there are none.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict

from semisync.common.errors import BadInput
from semisync.common.extras import extra
from semisync.common.sentences import words_of

_DATE = "tag:yaml.org,2002:timestamp"
_LONGEST = 4 << 20  # characters, which take up to a minute; a plan has 100 per tensor


def dump(data: Dict[str, Any]) -> str:
    """`data` as YAML, in its order."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(unicode: bool) -> str:
        found: str = yaml.dump(
            data, None, Dumper, sort_keys=False, allow_unicode=unicode, width=100
        )
        return found

    plain = text(True)
    # --dry-run prints it: where a character is not printable, all that are not ASCII are escaped.
    return plain if all(line.isprintable() for line in plain.split("\n")) else text(False)


def load(text: str, where: str) -> Any:
    """Parses YAML, except that what looks like a date stays text.

    Raises:
        BadInput: it is malformed, has an alias, or has a field twice, of which yaml.safe_load keeps
            the last; the message begins with `where`.
    """
    if len(text) > _LONGEST:
        raise BadInput(
            f"{where} has {len(text):,} characters of YAML, expected at most {_LONGEST:,}"
        )
    with extra("report", f"to read {where}"):
        import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {
            first: [resolver for resolver in resolvers if resolver[0] != _DATE]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                event = self.peek_event()
                raise yaml.YAMLError(
                    f"the alias *{event.anchor} is not read, write out what it stands for"
                    f"{event.start_mark}"
                )
            return super().compose_node(parent, index)

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

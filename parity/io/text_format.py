"""The layout of files of separated values, and its option."""

from typing import Any, Mapping, NamedTuple, Optional, Sequence, Union

from semisync.common import json_text
from semisync.common.errors import UsageError

SEPARATORS = {"csv": ",", "tsv": "\t", "text": "\t"}  # by the format of parity.io.data_files


class TextFormat(NamedTuple):
    """How a text file is written.

    Args:
        separator: one character between fields; by default a comma in .csv files, else a tab.
        names: of the columns, where the first line has none.
        values: one character between the values of a field.
        weight: one character between an id and its weight.
        quote: one character around fields that hold a separator, doubled within; None where quotes
            are characters like any other. Line breaks within a field are refused.
        null: a field that is missing, as an empty one is, such as \\N in Hive's files.
        decimal: "," where numbers have decimal commas, which only scores may.

    Examples:
        >>> from migrate.data import TextFormat, infer
        >>> text = TextFormat(separator=";", names=["user", "item"])
        >>> infer("clicks.txt", text=text)[0].to_json()
        {'name': 'user', 'kind': 'ids'}
    """

    separator: str = ""
    names: Optional[Sequence[str]] = None
    values: str = "|"
    weight: str = ":"
    quote: Optional[str] = '"'
    null: Optional[str] = None
    decimal: str = "."

    def checked(self) -> "TextFormat":
        """Checks the characters.

        Returns:
            Itself.

        Raises:
            UsageError: one is not a single ASCII character, two are the same, or `null` cannot be a
                field.
        """
        marks = {
            "separator": self.separator or None,
            "values": self.values,
            "weight": self.weight,
            "quote": self.quote,
            "decimal": None if self.decimal == "." else self.decimal,
        }
        given = {name: mark for name, mark in marks.items() if mark is not None}
        for name, mark in given.items():
            if len(mark) != 1 or not mark.isascii() or mark in "\r\n":
                raise UsageError(
                    f"{name} of a text format is {mark!r}; one ASCII character is expected"
                )
        if self.decimal not in (".", ","):
            raise UsageError(f"decimal of a text format is {self.decimal!r}; . or , is expected")
        if len(set(given.values())) < len(given):
            raise UsageError(f"a text format has one character for two purposes: {given}")
        if self.null is not None and (not self.null or {*self.null} & {self.separator, "\r", "\n"}):
            raise UsageError(f"null of a text format is {self.null!r}, which cannot be a field")
        return self


def of_kind(kind: str, given: Optional[TextFormat]) -> TextFormat:
    """The layout of a file of one of SEPARATORS: as given, else by its name.

    Raises:
        UsageError: the name says a separator that the format has for another purpose.
    """
    given = given or TextFormat()
    if given.separator:
        return given
    return given._replace(separator=SEPARATORS[kind]).checked()


def add_text(group: Any) -> None:
    """Declares the option that `text_format` reads."""
    group.add_argument(
        "--text",
        metavar="JSON",
        help="how text files are written: "
        f'{", ".join(TextFormat._fields)}, as {{"separator": ";"}}; by default .csv and .tsv '
        "files are read by their name and header",
    )


def text_format(given: Union[str, Mapping[str, Any], None]) -> Optional[TextFormat]:
    """The value of --text in JSON, or `text` in a file of settings.

    Raises:
        UsageError: it is not an object of such fields.
    """
    if given is None:
        return None
    try:
        fields = json_text.loads(given) if isinstance(given, str) else given
        unknown = [name for name in fields if name not in TextFormat._fields]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is unknown")
        return TextFormat(**fields).checked()
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"text is {str(given)[:200]}: expected a JSON object of "
            f"{', '.join(TextFormat._fields)} ({error})"
        ) from error

"""Definitions of message types: the bag's own, or those that every distribution shares."""

from __future__ import annotations

from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from com_bags.cdr import FIELDS, JOINT_STATE
from com_bags.exceptions import DefinitionError
from com_model.text import listing

_IDL = "=" * 80 + "\n"


def foreign_store(connection: Connection) -> Typestore | None:
    """Finds out whether a bag's definition of a type differs from the one that is understood.

    Args:
        connection: Of one of cdr.FIELDS.

    Returns:
        None where it is the same, or where the bag has none; else types to read messages with.

    Raises:
        DefinitionError: The definition cannot be read, or lacks a field that is needed.
    """
    if connection.msgdef.format == MessageDefinitionFormat.NONE:
        return None
    known = get_typestore(Stores.LATEST).fielddefs
    try:
        types = _types(connection)
        if all(types.get(name) == known.get(name) for name in types if name in known):
            return None
        store = get_typestore(Stores.EMPTY)
        store.register(types)
        fields = {name for name, _ in types[connection.msgtype][1]}
    except Exception as error:  # of the parser, whatever a text makes of it
        problem = f"its definition in the bag cannot be read: {str(error)[:160]}"
        raise DefinitionError(problem, connection.msgtype) from error
    needed = {"header", *FIELDS[connection.msgtype]}
    needed |= {"name"} if connection.msgtype == JOINT_STATE else set()
    if not needed <= fields:
        raise DefinitionError(
            f"its definition in the bag has the fields {listing(sorted(fields))}; expected "
            f"{listing(sorted(needed))} too. Convert the topic before you record it",
            connection.msgtype,
        )
    return store


def _types(connection: Connection) -> dict:
    text = connection.msgdef.data
    if connection.msgdef.format == MessageDefinitionFormat.MSG:
        return get_types_from_msg(text, connection.msgtype)
    if not text.startswith(f"{_IDL}IDL: "):
        return get_types_from_idl(text)
    types: dict = {}
    for part in text.split(_IDL)[1:]:
        types.update(get_types_from_idl(part.split("\n", 1)[1]))
    return types

"""XML that a user gave (KML, GPX), read by a parser that refuses entities and references."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from engram._arrays import check_file
from engram.errors import InputError

LARGEST = 64 * 2**20
"""Bytes of an XML file that is read."""


def read_xml(path: Path, root: str) -> Element:
    """The root element of a file, which must have this name (in any namespace)."""
    check_file(path)
    if path.stat().st_size > LARGEST:
        raise InputError(
            f"{path} has {path.stat().st_size / 1e6:,.0f} MB; at most {LARGEST / 1e6:,.0f} MB of "
            "XML are read: cut it into parts"
        )
    try:
        found: Element = fromstring(path.read_bytes(), forbid_dtd=True)
    except DefusedXmlException:
        raise InputError(
            f"{path} has a document type or entities, which are not read; save it without them"
        ) from None
    except (ParseError, ValueError, LookupError, RecursionError) as error:
        raise InputError(f"{path} is not well-formed XML: {error}; save it again") from error
    if local(found) != root:
        raise InputError(f"{path} holds <{local(found)[:40]}>, not <{root}>; is it another format?")
    return found


def local(element: Element) -> str:
    """Name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def under(element: Element, name: str) -> Iterator[Element]:
    """All elements of this name below one, in order, however deep."""
    for found in element.iter():
        if found is not element and isinstance(found.tag, str) and local(found) == name:
            yield found


def child_text(element: Element, name: str) -> str:
    """Text of the first child of this name, or nothing."""
    for child in element:
        if isinstance(child.tag, str) and local(child) == name:
            return "".join(child.itertext()).strip()
    return ""

"""Photos of measurements, and what a campaign's page shows beside it."""

from __future__ import annotations

import hashlib
import io
import json
import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from engram._files import open_image
from engram.campaign.sql_store import SqlStore
from engram.errors import InputError, NotFoundError
from engram.server import tables

SIDE = 1600
"""Pixels of the longer side of a photo that is kept."""
MOST_PIXELS = 60_000_000


def cleaned(data: bytes) -> tuple[bytes, int, int]:
    """A photo drawn anew as JPEG, upright and not large; where and with what it was taken, which
    stands in photos unasked, is left out. Gives width and height as well."""
    from PIL import Image, ImageOps

    with open_image(data, "sent as photo") as image:
        if image.width * image.height > MOST_PIXELS:
            raise InputError(
                f"the photo has {image.width}x{image.height} pixels; send one of up to "
                f"{MOST_PIXELS / 1e6:.0f} megapixels"
            )
        image.draft("RGB", (SIDE, SIDE))
        upright = ImageOps.exif_transpose(image).convert("RGB")
        upright.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
        plain = Image.new("RGB", upright.size)
        plain.paste(upright)
        out = io.BytesIO()
        plain.save(out, "JPEG", quality=80)
    return out.getvalue(), plain.width, plain.height


class Photos:
    """Photos by campaign and hash."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def add(self, campaign: str, who: str, data: bytes) -> dict[str, Any]:
        """Keep a photo; the same one is kept once."""
        picture, width, height = cleaned(data)
        name = hashlib.sha256(picture).hexdigest()
        row = {
            "campaign": campaign,
            "sha256": name,
            "who": who[:200],
            "at": time.time(),
            "picture": picture,
        }

        def work(connection: Connection) -> None:
            if _find(connection, campaign, name) is None:
                connection.execute(tables.photos.insert().values(row))

        self._store.change(work)
        return {"photo": name, "width": width, "height": height, "bytes": len(picture)}

    def get(self, campaign: str, name: str) -> bytes:
        """A photo as JPEG."""
        found = self._store.look(lambda connection: _find(connection, campaign, name))
        if found is None:
            raise NotFoundError(f"there is no photo {name[:12]} in this campaign; send it first")
        return found


def _find(connection: Connection, campaign: str, name: str) -> bytes | None:
    c = tables.photos.c
    query = sa.select(c.picture).where(c.campaign == campaign, c.sha256 == name)
    found = connection.execute(query).scalar_one_or_none()
    return None if found is None else bytes(found)


class PageSettings:
    """Settings of pages by campaign."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def get(self, campaign: str) -> dict[str, Any]:
        c = tables.pages.c
        query = sa.select(c.settings).where(c.campaign == campaign)
        text = self._store.look(lambda connection: connection.execute(query).scalar())
        return {} if text is None else dict(json.loads(text))

    def set(self, campaign: str, settings: dict[str, Any]) -> None:
        table = tables.pages

        def work(connection: Connection) -> None:
            connection.execute(table.delete().where(table.c.campaign == campaign))
            text = json.dumps(settings)
            connection.execute(table.insert().values(campaign=campaign, settings=text))

        self._store.change(work)

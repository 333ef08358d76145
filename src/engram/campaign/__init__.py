"""Campaigns: searches in the real world over a durable, append-only log."""

from __future__ import annotations

from engram.campaign.answers import (
    CampaignLine,
    Explanation,
    Exported,
    Extended,
    LogLine,
    NextCell,
    Outline,
    Receipt,
    Status,
    Told,
)
from engram.campaign.campaign import RETRY_AFTER, Campaign
from engram.campaign.events import Event
from engram.campaign.explain import draw, in_words
from engram.campaign.export import export, history
from engram.campaign.model import Query, Spec, StaleError, StorageError
from engram.campaign.remaining import Remaining, remaining
from engram.campaign.start import DEFAULT_POLICY, create_campaign, open_campaign
from engram.campaign.status import outline, overview, status
from engram.campaign.storage import Storage
from engram.campaign.store import LogStore
from engram.campaign.verify import Verification, verify
from engram.errors import DamagedError

__all__ = [
    "DEFAULT_POLICY",
    "RETRY_AFTER",
    "Campaign",
    "CampaignLine",
    "DamagedError",
    "Event",
    "Explanation",
    "Exported",
    "Extended",
    "LogLine",
    "LogStore",
    "NextCell",
    "Outline",
    "Query",
    "Receipt",
    "Remaining",
    "Spec",
    "StaleError",
    "Status",
    "Storage",
    "StorageError",
    "Told",
    "Verification",
    "create_campaign",
    "draw",
    "export",
    "history",
    "in_words",
    "open_campaign",
    "outline",
    "overview",
    "remaining",
    "status",
    "verify",
]

"""The report of one task: ``report.html``, which fetches nothing, and ``search.gif``."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from engram import __version__
from engram._writing import write_files
from engram.policies import POLICIES
from engram.report.animation import animate
from engram.report.figures import FigureText, Section, sections
from engram.report.summary import (
    Entry,
    Result,
    entries_of,
    headline,
    object_sizes,
    random_result,
    result_of,
)
from engram.simulation import Trace

STYLE = """
:root { color-scheme: light dark; --ink: #1b1d1f; --soft: #5a6067; --paper: #ffffff;
  --card: #f5f6f7; --rule: #d4d6d9; --accent: #1f7a43; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --soft: #a3a9b0; --paper: #15171a;
  --card: #1e2125; --rule: #3b4046; --accent: #63c98a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.35rem; margin: 3rem 0 .3rem; padding-top: 1rem;
  border-top: 1px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 0 0 .2rem; }
p { margin: .4rem 0; max-width: 46rem; }
.soft, figcaption p { color: var(--soft); }
.headline { border-left: 4px solid var(--accent); background: var(--card);
  padding: .9rem 1.2rem; margin: 1.4rem 0; }
.headline p { max-width: none; }
.headline p:first-child { font-size: 1.2rem; }
.headline ul { margin: .4rem 0 0; padding-left: 1.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .45rem .5rem; text-align: right; border-bottom: 1px solid var(--rule);
  vertical-align: baseline; }
th:first-child { text-align: left; }
tbody th, td { white-space: nowrap; }
thead th { font-weight: 600; font-size: .82rem; vertical-align: bottom; }
tbody th { font-weight: 600; }
tr.reference { color: var(--soft); }
tr.reference th { font-weight: 400; }
.dot { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .45em; }
figure { margin: 1.8rem 0; break-inside: avoid; }
figure svg, figure img { display: block; max-width: 100%; height: auto; margin-top: .6rem; }
figure svg * { stroke-linejoin: round; stroke-linecap: butt; }
figure img { border: 1px solid var(--rule); }
dl { columns: 24rem 2; column-gap: 2.5rem; }
dl div { break-inside: avoid; padding-bottom: .7rem; }
dt { font-weight: 600; }
dd { margin: 0; max-width: 46rem; color: var(--soft); }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--rule); font-size: .88rem;
  color: var(--soft); }
@media screen { .wide svg { min-width: 34rem; } }
@media print {
  :root { color-scheme: light; --ink: #000; --soft: #444; --paper: #fff; --card: #f5f6f7;
    --rule: #ccc; --accent: #1f7a43; }
  @page { margin: 14mm; }
  body { font-size: 10.5pt; }
  dl { columns: 2; }
  main { max-width: none; padding: 0; }
  h2, h3, .about { break-after: avoid; }
  .wide { overflow: visible; }
  table { font-size: 8pt; }
  th, td { padding: .3rem .35rem; }
  thead th { font-size: 7.5pt; }
  .animation { display: none; }
  .headline, .dot { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

GLOSSARY = {
    "Cell": "The piece of the area that one measurement covers.",
    "Target cell": "A cell that holds at least some target.",
    "Budget": "How many cells may be measured in all.",
    "Success rate (SR)": "Target cells found, as a share of the most that this budget allows; "
    "1 is perfect.",
    "Mass found": "Amount of target in the measured cells, as a share of the most that this "
    "budget could have brought.",
    "Recall": "Target cells found, as a share of all target cells in the area.",
    "Gap closed": "How far the success rate got from that of random search (0 %) towards "
    "perfection (100 %); negative when worse than random.",
    "Separate targets touched": "Connected targets of which at least one cell was measured.",
    "Network evaluations": "Passes through the neural networks for 16 imagined areas, a measure "
    "of work that does not depend on the machine.",
    "Posterior sample": "A whole area, imagined by the policy, that agrees with the cells measured "
    "so far.",
    "Posterior mean": "The average of what is imagined; blurred where the policy is unsure.",
    "Exploration": "How much the imagined areas disagree about a cell: a visit would teach much.",
    "Likelihood": "How much the imagined areas agree about a cell.",
    "Reward": "How much the imagined content of a cell resembles the targets found so far.",
    "Exploitation": "Likelihood times reward: a visit would probably bring a find.",
    "Exploration weight (alpha)": "Share of exploration in the total score; exploitation has the "
    "rest.",
    "Permanent and transient memory": "The permanent memory is a frozen model of what areas look "
    "like in general; the transient memory is small and learns from this search.",
    "Evidence": "Logarithm of the probability that was given to an outcome before it was seen, in "
    "nats; closer to 0 is better.",
    "Rolled back": "An update of the transient memory that was undone because measurements it had "
    "not seen became less likely.",
    "Reliability": "Whether things forecast with 70 % happen in 70 % of the cases.",
    "Distance to the truth (L2)": "Root of the mean squared difference between posterior mean and "
    "true content.",
}

COLUMNS = (
    "policy",
    "budget",
    "target cells found",
    "success rate (SR)",
    "mass found",
    "recall",
    "gap closed",
    "separate targets touched",
    "seconds per measurement",
    "network evaluations per measurement",
)


def write_report(
    traces: Sequence[Trace],
    out: Path,
    *,
    title: str,
    notes: Sequence[str] = (),
    beside: Mapping[str, str] | None = None,
) -> Path:
    """Write ``report.html`` and ``search.gif`` into the folder ``out``; returns the page's path.

    traces : searches of one and the same task, one per policy or seed
    notes  : sentences shown below the headline, for instance how the area was prepared
    beside : further files of the folder, name -> text; all files are written, or none

    The page holds everything it needs, the animation included, and fetches nothing.
    """
    entries = entries_of(traces)
    gif = animate(entries)
    text = page(title, entries, sections(entries), gif, notes)
    target = Path(out) / "report.html"
    more = {Path(out) / name: content for name, content in (beside or {}).items()}
    write_files({Path(out) / "search.gif": gif, target: text, **more})
    return target


def page(
    title: str, entries: Sequence[Entry], parts: Sequence[Section], gif: bytes, notes: Sequence[str]
) -> str:
    """The whole document."""
    lead, others = headline(entries)
    rest = "".join(f"<li>{escape(text)}</li>" for text in others)
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">{escape(_setting(entries))}</p>',
        f'<div class="headline"><p><strong>{escape(lead)}</strong></p>',
        f"<ul>{rest}</ul></div>" if rest else "</div>",
        _notes(notes),
        '<figure class="animation"><figcaption><h3>The search as it went</h3><p>The truth, and the '
        "cells each policy has measured so far: green for target, red for none, grey for not "
        f'measured.</p></figcaption><img alt="Animation of the search" src="{_uri(gif)}"></figure>',
        "<h2>Figures at a glance</h2>",
        table(entries),
        *(_section(part) for part in parts),
        _glossary(),
        f"<footer>{escape(_provenance(entries))}</footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def table(entries: Sequence[Entry]) -> str:
    """One row per policy, best first, and the expectation of random search for each budget."""
    task = entries[0].trace.task
    total = len(object_sizes(task))
    ranked = sorted(entries, key=lambda e: e.trace.success_rate(), reverse=True)
    budgets = sorted({e.trace.budget for e in entries})
    rows = [_row(result_of(e), task.targets, total, e.colour) for e in ranked]
    rows += [_row(random_result(task, b), task.targets, total, None) for b in budgets]
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row(result: Result, targets: int, objects: int, colour: str | None) -> str:
    expected = colour is None
    dot = "" if expected else f'<span class="dot" style="background:{colour}"></span>'
    count = ".1f" if expected else ".0f"
    values: Iterable[str] = (
        str(result.budget),
        f"{result.found:{count}} of {targets}",
        f"{result.success_rate:.3f}",
        f"{result.mass:.3f}",
        f"{result.recall:.3f}",
        f"{result.gap:.0%}",
        f"{result.objects:{count}} of {objects}",
        "–" if result.seconds is None else f"{result.seconds:.3g}",
        "–" if result.evaluations is None else f"{result.evaluations:.3g}",
    )
    cells = "".join(f"<td>{value}</td>" for value in values)
    kind = ' class="reference"' if expected else ""
    return f'<tr{kind}><th scope="row">{dot}{escape(result.label)}</th>{cells}</tr>'


def _setting(entries: Sequence[Entry]) -> str:
    task = entries[0].trace.task
    grid = task.grid
    h, w = grid.cell
    pixels = "one pixel each" if h * w == 1 else f"{h} x {w} pixels each"
    channels = "1 channel" if grid.channels == 1 else f"{grid.channels} channels"
    closed = int(grid.closed.sum())
    return (
        f"Area {task.name}: {grid.rows} x {grid.cols} cells of {pixels}, {channels}"
        + (f", {closed} cells closed" if closed else "")
        + f"; {task.targets} cells hold target, in {len(object_sizes(task))} separate targets."
    )


def _notes(notes: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>" if notes else ""


def _section(section: Section) -> str:
    figures = "".join(_figure(figure) for figure in section.figures)
    about = f'<p class="about">{escape(section.about)}</p>'
    return f"<h2>{escape(section.heading)}</h2>{about}{figures}"


def _figure(figure: FigureText) -> str:
    return (
        f"<figure><figcaption><h3>{escape(figure.heading)}</h3><p>{escape(figure.caption)}</p>"
        f'</figcaption><div class="wide">{figure.markup}</div></figure>'
    )


def _glossary() -> str:
    items = "".join(
        f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in GLOSSARY.items()
    )
    return f"<h2>Glossary</h2><dl>{items}</dl>"


def _provenance(entries: Sequence[Entry]) -> str:
    runs = []
    for entry in entries:
        spec = POLICIES.get(entry.trace.policy)
        about = f": {spec.summary}" if spec else ""
        runs.append(f"{entry.label}{about} (seed {entry.trace.seed})")
    return f"Made by engram {__version__}. " + "; ".join(runs) + "."


def _uri(gif: bytes) -> str:
    return f"data:image/gif;base64,{b64encode(gif).decode()}"

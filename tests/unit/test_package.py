from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import engram
from engram.cli.main import ROOMS, command_of

HEAVY = ("torch", "scipy", "sklearn", "matplotlib", "PIL", "sqlalchemy", "typer", "rich")


def test_importing_engram_stays_light() -> None:
    code = f"import engram, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_are_what_they_say_however_often_they_are_used() -> None:
    for _ in range(2):
        for name in engram.__all__:
            assert getattr(engram, name) is not None
        assert callable(engram.simulate)
        assert callable(engram.load_memory)


def test_errors_form_one_family() -> None:
    assert issubclass(engram.InputError, engram.EngramError)
    assert issubclass(engram.InputError, ValueError)
    assert issubclass(engram.WeightsError, engram.EngramError)


def test_a_campaign_loads_neither_the_paper_nor_reports_nor_a_server(tmp_path: Path) -> None:
    """The reproduction of the paper is a room of its own: a whole season never enters it."""
    code = (
        "import sys\n"
        "from engram.cli.main import main\n"
        "for line in ('create pond --size 8,8 --budget 9 --policy gp', 'ask pond -n 2',\n"
        "             'tell pond --cell 1,1 --outcome 1', 'status pond', 'history pond',\n"
        "             'explain pond --query 1', 'verify pond', 'export pond -o a.json', 'list'):\n"
        "    assert main(['campaign', *line.split(), '--db', 'c.db', '--json']) == 0, line\n"
        "rooms = ('engram.reproduction', 'engram.report', 'engram.server', 'engram.bench')\n"
        "print('loaded:', [m for m in sys.modules if m.startswith(rooms)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip().splitlines()[-1] == "loaded: []"


def test_a_search_never_enters_the_room_of_the_paper(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np, engram\n"
        "from engram.cli.main import main\n"
        "image = np.random.default_rng(0).random((8, 8))\n"
        "np.save('image.npy', image), np.save('mask.npy', image > 0.8)\n"
        "line = 'search --image image.npy --target mask.npy --budget 6 --policy gp --out out'\n"
        "assert main(line.split()) == 0\n"
        "task = engram.ball_task(0)\n"
        "engram.simulate(engram.make_policy('gp', task.grid, 5), task)\n"
        "print('loaded:', [m for m in sys.modules if m.startswith('engram.reproduction')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip().splitlines()[-1] == "loaded: []"


def test_the_command_line_starts_without_torch_and_without_a_database() -> None:
    rooms = ("numpy", *HEAVY[:-2], "fastapi", "pydantic", "engram.policies", "engram.bench")
    for given in ([], ["--help"], ["--version"]):
        code = (
            f"import sys; from engram.cli.main import main; main({given!r})\n"
            f"print([m for m in {rooms!r} if m in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip().endswith("[]"), given


def test_the_overview_says_of_every_command_what_the_command_says_of_itself() -> None:
    whole, overview = command_of(*ROOMS).commands, command_of().commands
    assert whole.keys() == overview.keys() == ROOMS.keys()
    for name, (_, line) in ROOMS.items():
        assert overview[name].help == line
        assert whole[name].help.splitlines()[0] == line


def test_a_campaign_loads_no_more_than_its_policy_needs(tmp_path: Path) -> None:
    """What a new process loads is paid for at every ask: no toolbox for one function of it."""
    code = (
        "import sys\n"
        "from engram.cli.main import main\n"
        "for policy, rooms in (('gp', ('torch',)), ('auto', ('torch._dynamo', 'sympy'))):\n"
        "    for line in (f'create {policy} --size 8,8 --budget 9 --policy {policy}',\n"
        "                 f'ask {policy} -n 2', f'tell {policy} --cell 1,1 --outcome 1',\n"
        "                 f'ask {policy} -n 2', f'status {policy}'):\n"
        "        assert main(['campaign', *line.split(), '--db', 'c.db', '--json']) == 0, line\n"
        "    rooms += ('sklearn', 'pandas', 'scipy.signal', 'scipy.stats', 'matplotlib')\n"
        "    print('loaded:', [m for m in rooms if m in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    loaded = [line for line in done.stdout.splitlines() if line.startswith("loaded")]
    assert loaded == ["loaded: []", "loaded: []"]

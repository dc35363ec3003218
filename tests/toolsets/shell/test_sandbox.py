"""Commands that run without approval run behind a wall that the kernel holds, whatever rule allowed them."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from llm_do import Runtime
from llm_do.project.sandbox_spec import SandboxSpec
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.toolsets.shell import shell_readonly
from llm_do.toolsets.shell.sandbox import bubblewrap, status
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script
from tests.toolsets.shell.support import OFF, configured, context, run

FREE = ("src/notes.txt", "build/old.o", "data.txt")


def kept(root: Path) -> Mapping[str, str]:
    """The content of everything that must not change."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_relative_to(root / "build")]
    names = {path.relative_to(root).as_posix(): path for path in files}
    watched = [name for name in names if name not in FREE and not name.startswith(".llm-do/")]
    return {name: hashlib.sha256(names[name].read_bytes()).hexdigest() for name in watched}


def sh(root: Path, text: str, **options: Any) -> dict[str, Any]:
    """Run a shell's script as a command that a rule allows."""
    return run(configured(root, allow=["sh *"], **options), f"sh -c '{text}'")


ATTACKS = [
    "echo evil > project.json",
    "echo evil >> tools.py",
    "rm -rf src main.agent tools.py .git",
    "mv tools.py old.py",
    "mv src src2; mkdir -p src/deep/er; echo evil > src/deep/er/helper.py",
    "mv src/deep src/deeper; mkdir -p src/deep/er; echo evil > src/deep/er/helper.py",
    "echo evil > src/evil.txt && mv src/evil.txt src/deep/er/helper.py",
    "cp data.txt tools.py; ln -f data.txt tools.py; ln -sf data.txt tools.py",
    "ln tools.py build/t; echo evil > build/t",
    "truncate -s 0 main.agent; dd if=/dev/zero of=main.agent count=1",
    "find . -name helper.py -delete",
    "echo evil > .git/config; rm -rf .git/hooks; touch .git/hooks/pre-commit; echo evil > .git/HEAD",
    "git config core.pager evil; git commit --allow-empty -qm evil; git checkout -q -b evil; git gc -q",
    "sed -i s/x/evil/ tools.py; perl -pi -e s/x/evil/ tools.py; tee tools.py < data.txt",
    "cd src && echo evil > ../tools.py; echo evil > $PWD/deep/er/helper.py",
    "echo evil > /proc/self/cwd/tools.py; echo evil > /proc/self/root$PWD/tools.py",
    "tar cf build/a.tar data.txt --transform s/data.txt/tools.py/; tar xf build/a.tar; tar xf build/a.tar --overwrite",
    "umount tools.py; mount -o remount,rw,bind tools.py tools.py; umount -l .; echo evil > tools.py",
    'unshare -rm sh -c "umount tools.py; echo evil > tools.py"; unshare -m umount tools.py; echo evil > tools.py',
    "setfattr -n user.x -v y tools.py; echo evil > .llm-do/state.db; rm -rf .llm-do; touch .llm-do/approvals.json",
]


@pytest.mark.sample(1)
def test_no_command_changes_the_projects_code(backend: str, root: Path) -> None:
    before, state = kept(root), (root / ".llm-do/state.db").read_text()
    for attack in ATTACKS:
        sh(root, attack)
        assert before.items() <= kept(root).items(), attack
    assert ((root / ".llm-do/state.db").read_text(), (root / ".llm-do/approvals.json").exists()) == (state, False)


def test_commands_write_what_is_not_code(backend: str, root: Path) -> None:
    script = (
        "echo a > build/new.o && mkdir build/d && mv build/d build/e && echo b > data.txt && echo c > src/notes.txt"
    )
    script += (
        " && rm build/old.o && echo d > $TMPDIR/x && echo e > $HOME/y && mkdir -p $XDG_CACHE_HOME/z && cat $TMPDIR/x"
    )
    assert sh(root, script) == {"exit_code": 0, "stdout": "d\n", "stderr": "", "truncated": False}
    assert sorted(path.name for path in (root / "build").iterdir()) == ["e", "new.o"]
    assert ((root / "data.txt").read_text(), (root / "src/notes.txt").read_text()) == ("b\n", "c\n")


def test_new_files_beside_code_can_be_made_in_mounts(root: Path) -> None:
    if bubblewrap.find_prefix()[0] is None:
        pytest.skip("bubblewrap doesn't work on this machine")
    assert sh(root, "echo a > new.txt && echo b > src/new.txt && rm new.txt")["exit_code"] == 0
    assert (root / "src/new.txt").read_text() == "b\n"


def test_the_rest_of_the_disk_can_only_be_read(backend: str, root: Path) -> None:
    (root.parent / "beside.txt").write_text("beside\n")
    result = sh(root, "echo evil > ../beside.txt; echo evil > /etc/llm-do-evil; head -n 1 /etc/passwd | cut -d: -f1")
    assert result["stdout"] == "root\n"
    assert ((root.parent / "beside.txt").read_text(), Path("/etc/llm-do-evil").exists()) == ("beside\n", False)


@pytest.mark.sample(1)
def test_secrets_and_the_words_of_others_can_not_be_read(backend: str, root: Path) -> None:
    for command in ("cat .env", "cat keys/server.pem", "grep -rh . .", "cat .llm-do/state.db", "tar cf - ."):
        result = sh(root, command)
        for secret in ("secret-of", "words of ann"):
            assert secret not in result["stdout"] + result["stderr"], command
    assert sh(root, "cat .llm-do/artifacts/a.txt")["stdout"] == "a long result\n"
    readable = SandboxSpec(readable=[".env"])
    assert sh(root, "cat .env", sandbox=readable)["stdout"] == "KEY=secret-of-env\n"


def test_a_command_that_only_reads_sees_no_secrets_in_a_recursive_search_either(backend: str, root: Path) -> None:
    (root.parent / "outside").mkdir()
    (root.parent / "outside/words.txt").write_text("words outside\n")
    (root / "link").symlink_to(root.parent / "outside")
    shell = shell_readonly(context(root))
    for command in ("grep -rh secret .", "grep -Rh words .", "cat .llm-do/state.db"):
        result = run(shell, command)
        found = result["stdout"]
        assert not any(secret in found for secret in ("secret-of", "words of ann", "words outside")), command
    assert run(shell, "grep -rh notes src")["stdout"] == "notes\n"


def test_a_failure_because_of_the_wall_says_so_and_how_to_go_on(backend: str, root: Path) -> None:
    result = sh(root, "echo evil > tools.py")
    assert result["exit_code"] != 0
    assert result["note"].startswith("It ran in a sandbox, because no one approved it: there the project's code, .git")
    assert result["note"].endswith("call shell again with outside_sandbox=true: a person is asked then.")
    assert "note" not in sh(root, "exit 3")


def test_the_network_is_as_the_toolset_says(backend: str, root: Path) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    accepting = threading.Thread(target=lambda: server.accept()[0].close(), daemon=True)
    accepting.start()
    (root / "build/connect.txt").write_text(f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)")
    for network, code in ((False, 1), (True, 0)):
        shell = configured(root, allow=["*"], network=network)
        result = run(shell, f"{sys.executable} build/connect.txt")
        assert result["exit_code"] == code, result
    accepting.join(5)
    server.close()


@pytest.mark.sample(1)
def test_a_service_is_not_reached_through_its_socket(backend: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = root / "s.sock", root.parent / "s.sock"
    monkeypatch.setattr("llm_do.toolsets.shell.sandbox.confinement._UNSEEN", ())  # the tests' folder is temporary
    (root / "build/connect.txt").write_text("import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])")
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as two:
        for listener, path in ((one, own), (two, other)):
            monkeypatch.chdir(path.parent)
            listener.bind(str(path))
            listener.listen()
        command = f"{sys.executable} build/connect.txt"
        for path in (own, other):
            offline = configured(root, allow=["*"], network=False)
            assert run(offline, f"{command} {path}")["exit_code"] == 1, path
        online = configured(root, allow=["*"], network=True)
        assert run(online, f"{command} {own}")["exit_code"] == 0


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["second.txt", ".git/credentials"])
def test_a_secret_is_hidden_under_all_its_names(backend: str, root: Path, name: str) -> None:
    (root / name).hardlink_to(root / ".env")
    for shell in (configured(root, allow=["*"]), shell_readonly(context(root))):
        assert "secret-of" not in run(shell, f"cat {name}")["stdout"]


def test_compiled_code_that_a_command_made_is_removed(backend: str, root: Path) -> None:
    (root / "build/__pycache__").mkdir()
    sh(
        root,
        "mkdir -p __pycache__ build/d/__pycache__; echo evil > build/d/__pycache__/x.pyc; ln -s build src/__pycache__",
    )
    left = [path.relative_to(root).as_posix() for path in root.rglob("__pycache__")]
    assert (left, (root / "build/old.o").exists()) == (["build/__pycache__"], True)


def test_nothing_stays_behind_even_without_its_mark(backend: str, root: Path) -> None:
    nap = f"27.{os.getpid()}"
    sh(root, f"env -i setsid sleep {nap} > /dev/null 2>&1 < /dev/null &")
    sh(root, f"env -i setsid setsid sleep {nap} & exit 3")
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(nap.encode() in line for line in lines)


def test_a_named_secret_of_the_home_folder_is_found_in_that_of_commands(
    backend: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = root.parent / "home"
    for name in (".kube/config", ".docker/config.json", ".docker/contexts/x", ".aws/credentials", ".gitconfig"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"{name}\n")
    monkeypatch.setenv("HOME", str(home))
    spec = SandboxSpec(readable=["~/.kube", "~/.docker/config.json"])
    found = sh(root, "cat ~/.kube/config ~/.docker/config.json; cat ~/.gitconfig ~/.aws/credentials", sandbox=spec)
    settings = "" if backend == "bubblewrap" else ".gitconfig\n"  # with mounts, the tests' temporary folder isn't seen
    assert found["stdout"] == f".kube/config\n.docker/config.json\n{settings}"
    hidden = sh(root, f"cat {home}/.aws/*; echo evil > {home}/.kube/config; echo evil > ~/.kube/config", sandbox=spec)
    assert (hidden["stdout"], (home / ".kube/config").read_text()) == ("", ".kube/config\n")


@pytest.mark.parametrize("elsewhere", ["", "other", None])
def test_secrets_of_the_accounts_home_folder_are_hidden_whatever_home_says(
    backend: str, root: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: str | None
) -> None:
    home = root.parent / "account"
    for name in (".aws/credentials", "notes.txt"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"{name}\n")
    account = pwd.struct_passwd(("me", "x", os.getuid(), 0, "", str(home), "/bin/sh"))
    monkeypatch.setattr("pwd.getpwuid", lambda _: account)
    if elsewhere is None:
        monkeypatch.delenv("HOME", raising=False)
    else:
        monkeypatch.setenv("HOME", elsewhere and str(root.parent / elsewhere))
    assert ".aws" not in sh(root, f"cat {home}/.aws/credentials")["stdout"]


def test_declared_folders_can_be_written(backend: str, root: Path) -> None:
    (root.parent / "cache").mkdir()
    spec = SandboxSpec(writable=["../cache"])
    assert sh(root, "echo a > ../cache/x && cat ../cache/x", sandbox=spec)["stdout"] == "a\n"


def test_git_can_be_written_if_declared_but_not_what_it_runs(root: Path) -> None:
    if bubblewrap.find_prefix()[0] is None:
        pytest.skip("Landlock can't create files beside protected ones")
    (root / ".git/hooks").mkdir(exist_ok=True)
    before = (root / ".git/config").read_text()
    spec = SandboxSpec(writable=[".git"])
    who = "git -c user.name=a -c user.email=a@example.org"
    result = sh(
        root, f"echo x > data.txt && git add data.txt && {who} commit -qm x && git log --oneline | wc -l", sandbox=spec
    )
    assert result["stdout"].strip() == "2", result
    sh(root, "git config core.pager evil; touch .git/hooks/evil; mv .git/hooks .git/h; mv .git g", sandbox=spec)
    assert (root / ".git/config").read_text() == before
    assert not (root / ".git/hooks/evil").exists()


@pytest.mark.parametrize("where", ["data.txt", "src/notes.txt"])
def test_code_behind_a_link_and_under_another_name_is_kept(backend: str, root: Path, where: str) -> None:
    (root / "tools.py").unlink()
    (root / "tools.py").symlink_to("build/impl.txt")
    (root / "build/impl.txt").write_text("x = 1\n")
    (root / "main.agent").unlink()
    os.link(root / where, root / "main.agent")
    text = (root / where).read_text()
    sh(
        root,
        f"rm tools.py; ln -sf {where} tools.py; echo evil > {where}; mv build/old.o tools.py; cp data.txt tools.py",
    )
    assert (root / "tools.py").readlink() == Path("build/impl.txt")
    assert (root / "main.agent").read_text() == text


def test_what_the_project_links_to_is_code_too(backend: str, root: Path) -> None:
    (root / "tools.py").unlink()
    (root / "build/impl.py").write_text("x = 1\n")
    (root / "tools.py").symlink_to("build/impl.py")
    sh(root, "echo evil > build/impl.py; echo evil > tools.py; mv build b")
    assert (root / "build/impl.py").read_text() == "x = 1\n"


@pytest.mark.slow
def test_a_folder_with_very_much_code_is_kept_as_a_whole(backend: str, root: Path) -> None:
    (root / "big/static").mkdir(parents=True)
    for number in range(1100):
        (root / f"big/m{number}.py").touch()
    result = sh(
        root,
        "echo evil > big/m7.py; echo evil > big/new.txt; echo a > big/static/x && cat big/static/x; echo b > data.txt",
    )
    assert result["stdout"] == "a\n"
    assert ((root / "big/m7.py").read_text(), (root / "big/new.txt").exists()) == ("", False)
    assert (root / "data.txt").read_text() == "b\n"


def test_data_folders_may_get_python_files(backend: str, root: Path) -> None:
    (root / "out").mkdir()
    (root / "out/old.py").write_text("x = 1\n")
    spec = agent(
        "main",
        script(call("shell", command="sh -c 'echo y > out/old.py; echo z > out/new.py'"), "done"),
        toolsets=["sh"],
    )
    toolsets = {"sh": BuiltinToolset("sh", {"type": "shell", "allow": ["sh *"]})}
    project = project_of([spec], root=root, toolsets=toolsets, data_folders=["out"])
    assert carry_out(Runtime(project, approvals="approve_all")).denials == []
    assert ((root / "out/old.py").read_text(), (root / "out/new.py").read_text()) == ("y\n", "z\n")


def test_off_confines_nothing(backend: str, root: Path) -> None:
    assert sh(root, "echo y > tools.py", sandbox=OFF)["exit_code"] == 0
    assert (root / "tools.py").read_text() == "y\n"


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "command",
    [
        pytest.param("python -m pytest -q tests", marks=pytest.mark.slow),
        "git status --short",
        "git diff --stat",
        "make",
    ],
)
def test_ordinary_programs_work(backend: str, root: Path, command: str) -> None:
    (root / "tests").mkdir()
    (root / "tests/test_one.py").write_text("def test_one(tmp_path):\n    (tmp_path / 'x').write_text('y')\n")
    (root / "Makefile").write_text("all: build/out\nbuild/out: data.txt\n\tcp data.txt build/out\n")
    words = command.replace("python", sys.executable, 1) if command.startswith("python") else command
    if not command.startswith("python") and shutil.which(command.split()[0]) is None:
        pytest.skip(f"{command.split()[0]} isn't installed")
    result = run(configured(root, allow=["*"]), words)
    assert result["exit_code"] == 0, result


def test_the_machine_says_which_sandbox_it_has() -> None:
    found = status()
    assert found.active is (found.backend is not None)
    assert ("can't change the project's code" in found.reason) is found.active
    assert found.active or "a convention" in found.reason

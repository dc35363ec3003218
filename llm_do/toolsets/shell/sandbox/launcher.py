"""Confine a program with Landlock, and leave no process behind: `python -I -S launcher.py RULES PROGRAM ARGUMENT...`.

RULES is a JSON file that `llm_do.toolsets.shell.sandbox.landlock` has written. This file runs by itself, with nothing
but the standard library; whatever fails here keeps the command from running.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import signal
import struct
import sys
import typing

FAILED = 126
"""The exit code if the process can't be confined."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 22, 36, 38
_GRACE = 0.3
"""Seconds that a command has to end in once it is asked to."""

_PR_CAPBSET_DROP = 24
_KEPT_BY_ROOT = (0, 1, 3, 4, 5)
"""CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID and CAP_KILL, as with bubblewrap."""

_SECCOMP_MODE_FILTER = 2
_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""The audit architecture of a machine, and its number of `socket`."""

_IO_URING_SETUP = 425
_AF_NETLINK = 16
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 13  # the error is EACCES
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def call(number: int, *arguments: object) -> int:
    """Make a system call; a failure raises `OSError`."""
    result = _libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return int(result)


def prctl(option: int, *values: object) -> None:
    """Set a property of this process."""
    words = [*values, *[ctypes.c_ulong(0)] * (4 - len(values))]
    if _libc.prctl(ctypes.c_int(option), *words) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def restrict_files(handled: int, net: int, scoped: int, rules: list[tuple[str, int]]) -> None:
    """Confine this process to the rules: a path, and what may be done with it and what is below it."""
    attributes = struct.pack("=QQQ", handled, net, scoped)
    ruleset = call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))
    for path, access in rules:
        try:
            at = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:  # it was removed since it was listed
            continue
        rule = struct.pack("=Qi", access, at)
        call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint(0))
        os.close(at)
    call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0))
    os.close(ruleset)


def drop_capabilities() -> None:
    """Have root keep only what concerns files of other users, whatever it runs."""
    for capability in range(64):
        if capability not in _KEPT_BY_ROOT:
            try:
                prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability))
            except OSError:  # one that this kernel doesn't know
                return


def forbid_sockets() -> None:
    """Refuse every new socket but those to the kernel itself: Landlock knows of TCP only."""
    arch, socket = _MACHINES[platform.machine()]
    steps = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 0, 7, arch),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 5, 0, 0x40000000),
        (_EQUAL, 4, 0, _IO_URING_SETUP),
        (_EQUAL, 0, 2, socket),
        (_LOAD, 0, 0, 16),
        (_EQUAL, 0, 1, _AF_NETLINK),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    program = b"".join(struct.pack("=HBBI", *step) for step in steps)
    held = ctypes.create_string_buffer(program)
    header = ctypes.create_string_buffer(struct.pack("@HxxxxxxP", len(steps), ctypes.addressof(held)))
    prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), header)


def confine(limits: dict[str, typing.Any]) -> None:
    """Confine this process to the limits."""
    prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
    if os.geteuid() == 0:
        drop_capabilities()
    prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1))
    restrict_files(limits["handled"], limits["net"], limits["scoped"], limits["rules"])
    if not limits["network"]:
        forbid_sockets()


def become(limits: dict[str, typing.Any], program: list[str]) -> typing.NoReturn:
    """Confine this process, then become the program."""
    try:
        confine(limits)
        os.execv(program[0], program)
    except (OSError, KeyError, ValueError) as error:
        sys.stderr.write(f"the command was not run: {program[0]} can't be confined and started: {error}\n")
        sys.stderr.flush()
    os._exit(FAILED)


def outlive(child: int) -> int:
    """Wait for the command, then end whatever it has left behind, and return its exit code.

    What loses its parent becomes a child of this process, even if it has changed its session and its environment.
    """

    def wait_a_little(*_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, _GRACE)

    def end(*_: object) -> None:
        os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGTERM, wait_a_little)
    signal.signal(signal.SIGALRM, end)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # a pipe's other end must see it close when the command closes it
        os.dup2(nothing, stream)
    ended = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.wait()
            if pid == child:
                ended = os.waitstatus_to_exitcode(status)
            if ended is not None:
                kill_children()
    return ended if ended is not None and ended >= 0 else 128 - (ended or 0)


def kill_children() -> None:
    """Kill the processes whose parent this one is by now."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:  # noqa: PTH123
            children = file.read().split()
    except OSError:
        return
    for each in children:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(int(each), signal.SIGKILL)


def main(rules: str, program: list[str]) -> None:
    """Run a program in a process that is confined, and end with its exit code."""
    try:
        with open(rules, encoding="utf-8") as file:  # noqa: PTH123 (pathlib would take longer than all the rest)
            limits = json.load(file)
        os.unlink(rules)  # noqa: PTH108
        prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGTERM))
        prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))
        child = os.fork()
    except (OSError, ValueError) as error:
        sys.stderr.write(f"the command was not run: it can't be confined: {error}\n")
        sys.exit(FAILED)
    if child == 0:
        become(limits, program)
    os._exit(outlive(child))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

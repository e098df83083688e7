"""One run of one command: how long, how much memory, and what came out."""

import hashlib
import os
import signal
import threading
import time

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/games",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "PYTHONHASHSEED": "0",
}


class Result:
    def __init__(self, seconds, status, usage, output):
        self.seconds = seconds
        self.status = status      # as from waitpid
        self.peak_kb = usage.ru_maxrss
        self.cpu = usage.ru_utime + usage.ru_stime
        self.output = output      # hash of standard output
        self.error = ""           # the last line of standard error, when it failed

    def failed(self):
        return self.status != 0


def _hash(path, unsteady):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        if unsteady:
            digest.update(unsteady.sub(b"", f.read()))
        else:
            while chunk := f.read(1 << 18):
                digest.update(chunk)
    return digest.hexdigest()


def holds(output, expected, unsteady):
    """Does a file hold the whole content of another, with something in front of it or behind?"""
    found = []
    for path in (output, expected):
        with open(path, "rb") as f:
            found.append(unsteady.sub(b"", f.read()) if unsteady else f.read())
    return found[1] in found[0]


def _last_line(path):
    with open(path, "rb") as f:
        f.seek(max(0, os.path.getsize(path) - 400))
        lines = f.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""


def spawn(command, stdout, stderr, executable=None):
    """Starts it in a group of its own, with the benchmark's environment and no input. `executable`: the
    file, where it is not the command's first word."""
    write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, stdout, write, 0o644),
        (os.POSIX_SPAWN_OPEN, 2, stderr, write, 0o644),
    ]
    return os.posix_spawn(executable or command[0], command, ENVIRONMENT, file_actions=actions, setpgroup=0)


def _wait(pid, limit):
    """(status, usage); kills the whole group when `limit` seconds are over."""

    def kill():
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    timer = threading.Timer(limit, kill)
    timer.start()
    try:
        _, status, usage = os.wait4(pid, 0)
    except BaseException:
        kill()
        raise
    finally:
        timer.cancel()
    return status, usage


def output_files(scratch):
    """Of this process alone: two benchmarks may share the scratch folder, though not the ratios."""
    return f"{scratch}/stdout-{os.getpid()}", f"{scratch}/stderr-{os.getpid()}"


def run(command, scratch, limit, unsteady=None, executable=None):
    stdout, stderr = output_files(scratch)
    start = time.perf_counter()
    pid = spawn(command, stdout, stderr, executable)
    status, usage = _wait(pid, limit)
    seconds = time.perf_counter() - start
    result = Result(seconds, status, usage, _hash(stdout, unsteady))
    if result.failed():
        if os.WIFSIGNALED(status):
            reason = f"signal {os.WTERMSIG(status)}"
            result.error = f"over {limit:.0f} s" if seconds >= limit else reason
        else:
            result.error = f"status {os.WEXITSTATUS(status)} {_last_line(stderr)}".strip()
    return result


def fastest(command, times, executable=None):
    """The best of many short runs, in seconds; None when one fails. Nothing is kept of the output."""
    best = None
    for _ in range(times):
        start = time.perf_counter()
        pid = spawn(command, "/dev/null", "/dev/null", executable)
        status, _ = _wait(pid, 60)
        seconds = time.perf_counter() - start
        if status != 0:
            return None
        best = min(seconds, best or seconds)
    return best

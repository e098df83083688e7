"""inlay trace browse, in a terminal of its own: what is on the screen after keys have been pressed."""
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

ROWS, COLUMNS = 24, 110


class Terminal:
    def __init__(self, argv):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.execv(argv[0], argv)
        self.seen = ""
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def read(self, seconds):
        ready, _, _ = select.select([self.fd], [], [], seconds)
        try:
            data = os.read(self.fd, 1 << 16) if ready else b""
        except OSError:
            data = b""
        self.seen += data.decode("utf-8", "replace")
        return data

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def screen(self):
        """The last whole picture, as lines; the chosen one begins with '>'."""
        last = self.seen.rsplit("\x1b[H", 1)[-1]
        last = last.replace("\x1b[7m", ">")
        return re.sub(r"\x1b\[[0-9?]*[A-Za-z]", "", last).replace("\r", "").split("\n")

    def shows(self, pattern, seconds=60):
        """True when a picture has it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if re.search(pattern, "\n".join(self.screen()), re.M):
                return True
            self.read(0.2)
        return False

    def ends(self):
        while self.read(0.5):
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def check_browse(t, need, _same):
    path = t.record("jit", ["throw"])
    terminal = Terminal([t.inlay, "trace", "browse", path])
    try:
        steps = (("", r"^> +\d.* 100\.0% .* 1  - main$"),
                 ("j", r"^>.* 1  +[+] catcher$"),
                 ("l", r"^ .* 1      [+] thrower$"),
                 ("\x1b[B*", r"^ .* 1 +thrower$"),
                 ("/after\r", r"^>.* 1 +[+] after$"),
                 ("\x1b[C", r"^ .* 1      [ ] leaf$"),
                 ("n", r"^>.* 1 +[-] after$"),
                 ("/nobody\r", r"'nobody' is in no name"),
                 ("\x1b[Hh", r"^>.* 1  [+] main$"))
        for keys, wanted in steps:
            terminal.press(keys)
            need(terminal.shows(wanted), f"after {keys!r}: no {wanted!r}", *terminal.screen())
        need(not terminal.shows("leaf", 1), "what is closed is shown", *terminal.screen())
        terminal.press("/leaf\r")
        need(terminal.shows(r"^>.* 1 +leaf$"), "what is found in a closed part is not shown", *terminal.screen())
        terminal.press("q")
        need(terminal.ends() == 0, "its end")
    finally:
        try:
            os.kill(terminal.pid, 9)
        except ProcessLookupError:
            pass
    done = t.command([t.inlay, "trace", "browse", path], 1)
    need("needs a terminal" in done.stderr, "without a terminal", done.stderr)

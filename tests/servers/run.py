#!/usr/bin/python3
"""Programs of several processes, some of which confine themselves, under both engines: they answer as they do
natively, and of each of their processes there is a report.

  tests/servers/run.py [--build DIR] [--only PATTERN] [--keep] [--browser]

sshd with ssh, nginx, PostgreSQL and redis; MPI's launcher; with --browser chromium in its sandbox (JIT only).
Prints a line for each failure and at the end N passed, N failed.
"""

import glob
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402

LIMIT = 120


def free_port():
    """One that no client gets by chance before the server has it: below those that the kernel hands out."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        most = int(f.read().split()[0])
    below = range(max(1024, most - 20000), most)
    for port in (*random.sample(below, min(100, len(below))), 0):
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return s.getsockname()[1]
            except OSError:
                pass
    raise driver.Failed("there is no free port")


def children_of(pid):
    found = []
    for task in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(task) as f:
                found += [int(word) for word in f.read().split()]
        except OSError:
            pass
    return found


def account_for_tests():
    """What the servers run as, where this is root."""
    return "nobody" if os.geteuid() == 0 else None


class Engine:
    """How a program is started: natively, under the JIT, or rewritten."""

    def __init__(self, kind, build, folder):
        self.kind, self.inlay, self.folder = kind, f"{build}/inlay", folder

    def prepare(self, program):
        if self.kind != "rewrite":
            return program
        out = f"{self.folder}/{os.path.basename(program)}.rewritten"
        if not os.path.exists(out):
            done = subprocess.run([self.inlay, "rewrite", "inscount", os.path.realpath(program), "-o", out],
                                  capture_output=True, text=True, timeout=LIMIT)
            if done.returncode:
                raise driver.Failed(f"rewrite {program}", done.stderr[-500:])
        return out

    def command(self, result, program, *arguments):
        prefix = [self.inlay, "run", "inscount", "-o", result, "--"] if self.kind == "jit" else []
        return prefix + [self.prepare(program), *arguments]

    def environment(self, result):
        own = {"INLAY_OUT": result} if self.kind == "rewrite" else {}
        return driver.ENVIRONMENT | {"HOME": self.folder} | own


class Server:
    """A server's process, and which processes it has had that run its program (by looking now and then)."""

    def __init__(self, engine, name, program, arguments, user=None):
        self.engine, self.name, self.seen = engine, name, set()
        self.folder = f"{engine.folder}/{name}"
        self.reports = driver.fresh(f"{self.folder}.reports")
        os.chmod(self.reports, 0o777)
        self.result = f"{self.reports}/result"
        self.log = open(f"{self.folder}.log", "w+")
        command = engine.command(self.result, program, *arguments)
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env=engine.environment(self.result), user=user, group=user and
                                        pwd.getpwnam(user).pw_gid, extra_groups=[] if user else None)
        self.program = os.path.realpath(engine.prepare(program))
        self.watching = True
        self.watcher = threading.Thread(target=self.watch)
        self.watcher.start()

    def look(self, pid):
        for child in children_of(pid):
            try:
                if os.path.realpath(f"/proc/{child}/exe") == self.program:
                    self.seen.add(child)
            except OSError:
                pass
            self.look(child)

    def watch(self):
        while self.watching:
            self.look(self.process.pid)
            time.sleep(0.01)

    def wait_for(self, ready):
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise driver.Failed(f"{self.name} ended at once", self.said())
            if ready():
                return
            time.sleep(0.1)
        raise driver.Failed(f"{self.name} does not come up", self.said())

    def said(self):
        self.log.seek(0)
        return self.log.read()[-1500:]

    def end(self, signo):
        self.process.send_signal(signo)
        try:
            status = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise driver.Failed(f"{self.name} does not end", self.said())
        finally:
            self.watching = False
            self.watcher.join()
        return status

    def missing_reports(self, but=()):
        """Numbers of processes that have left nothing."""
        if self.engine.kind == "native":
            return []
        end = time.monotonic() + LIMIT
        while True:
            missing = [pid for pid in self.seen - set(but) if not self.has_report(f"{self.result}.{pid}")]
            if not missing and self.has_report(self.result):
                return []
            if time.monotonic() > end:
                return missing or ["the first"]
            time.sleep(0.1)

    @staticmethod
    def has_report(path):
        try:
            with open(path) as f:
                return bool(re.search(r"\d+ instructions", f.read()))
        except OSError:
            return False


def answers(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


def output_of(command, env=None, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL,
                          env=env or driver.ENVIRONMENT, **more)
    return f"{done.stdout}status {done.returncode}"


# --- each server: what it answers, and which processes may have left no report

def redis(engine):
    port = free_port()
    folder = driver.fresh(f"{engine.folder}/redis.data")
    server = Server(engine, "redis", "/usr/bin/redis-server",
                    ["--port", str(port), "--dir", folder, "--bind", "127.0.0.1", "--save", ""])
    server.wait_for(lambda: answers(port))
    ask = ["redis-cli", "-p", str(port)]
    told = output_of(ask + ["eval", "for i=1,500 do redis.call('set', 'k'..i, i*i) end return redis.call('dbsize')", "0"])
    told += output_of(ask + ["bgsave"]) + output_of(["redis-benchmark", "-p", str(port), "-n", "500", "-q", "-t", "set"],
                                                    )[-8:]
    server.wait_for(lambda: os.path.exists(f"{folder}/dump.rdb"))
    told += f" {server.end(signal.SIGTERM)}"
    return told, server.missing_reports()


NGINX = """
daemon off; master_process on; worker_processes 2; pid {folder}/pid; error_log stderr; {user}
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
server {{ listen 127.0.0.1:{port}; root {folder}; gzip on; }} }}
"""


def nginx(engine):
    port = free_port()
    folder = driver.fresh(f"{engine.folder}/nginx.data")
    os.chmod(folder, 0o755)
    user = account_for_tests()
    with open(f"{folder}/conf", "w") as f:
        f.write(NGINX.format(folder=folder, port=port, user=f"user {user} nogroup;" if user else ""))
    with open(f"{folder}/page.html", "w") as f:
        f.write("<p>a page\n" * 500)
    server = Server(engine, "nginx", "/usr/sbin/nginx", ["-p", folder, "-c", f"{folder}/conf"])
    server.wait_for(lambda: answers(port))
    url = f"http://127.0.0.1:{port}/page.html"
    many = output_of(["ab", "-q", "-n", "100", "-c", "5", url])
    told = "".join(re.findall(r"(?:Complete requests|Failed requests|HTML transferred): +\d+", many))
    told += output_of(["python3", "-c", f"import urllib.request as u; print(len(u.urlopen('{url}').read()))"])
    told += f" {server.end(signal.SIGQUIT)} {len(server.seen)}"
    return told, server.missing_reports()


def postgres_folder():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
    return os.path.dirname(found[-1]) if found else None


def postgres(engine):
    port = free_port()
    binaries, user = postgres_folder(), "postgres" if os.geteuid() == 0 else None
    folder = driver.fresh(f"{engine.folder}/postgres.data")
    if user:
        shutil.chown(folder, user)
    as_user = ["runuser", "-u", user, "--"] if user else []
    made = output_of(as_user + [f"{binaries}/initdb", "-D", f"{folder}/data", "-A", "trust", "-N"])
    if not made.endswith("status 0"):
        raise driver.Failed("initdb", made[-1000:])
    server = Server(engine, "postgres", f"{binaries}/postgres",
                    ["-D", f"{folder}/data", "-k", folder, "-p", str(port), "-c", "listen_addresses=", "-c", "fsync=off"],
                    user=user)
    at = ["-h", folder, "-p", str(port)]
    server.wait_for(lambda: output_of(as_user + [f"{binaries}/pg_isready", "-q"] + at).endswith("status 0"))
    told = ""
    for query in ("create table t as select i, md5(i::text) m from generate_series(1, 2000) i",
                  "select count(*), max(m), sum(i) from t where i % 7 <> 3", "select 1/0"):
        told += output_of(as_user + [f"{binaries}/psql"] + at + ["-Atc", query, "postgres"])
    output_of(as_user + [f"{binaries}/pgbench", "-i", "-q"] + at + ["postgres"])
    many = output_of(as_user + [f"{binaries}/pgbench", "-c", "3", "-t", "20"] + at + ["postgres"])
    told += "".join(re.findall(r"actually processed: \d+/\d+", many))
    told += f" {server.end(signal.SIGINT)} {len(server.seen) >= 5}"
    return told, server.missing_reports()


SSHD = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PidFile none
PasswordAuthentication no
PermitRootLogin yes
"""


def ssh(engine):
    """The child that talks to whoever has not yet proved who he is may not make files grow: it has no report."""
    port = free_port()
    folder = driver.fresh(f"{engine.folder}/ssh.data")
    os.chmod(folder, 0o700)
    os.makedirs("/run/sshd", exist_ok=True)
    for key in ("host", "user"):
        output_of(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{key}"])
    with open(f"{folder}/conf", "w") as f:
        f.write(SSHD.format(port=port, folder=folder))
    server = Server(engine, "ssh", "/usr/sbin/sshd", ["-D", "-e", "-f", f"{folder}/conf"])
    server.wait_for(lambda: answers(port))
    me = pwd.getpwuid(os.geteuid()).pw_name
    result = f"{engine.folder}/ssh.client"
    told = output_of(engine.command(result, "/usr/bin/ssh", "-p", str(port), "-i", f"{folder}/user", "-o",
                                    "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
                                    "-o", "IdentitiesOnly=yes", f"{me}@127.0.0.1", "echo in; cat; exit 3"),
                     env=engine.environment(result))
    told += f" {server.end(signal.SIGTERM)}"
    end = time.monotonic() + LIMIT
    while engine.kind != "native" and not any(Server.has_report(f"{server.result}.{pid}") for pid in server.seen):
        if time.monotonic() > end:
            return told, ["of every session"]
        time.sleep(0.1)
    return told, []


def mpi(engine):
    """Each rank has a file of its own, named after it."""
    result = f"{driver.fresh(f'{engine.folder}/mpi')}/result"
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    told = output_of(["mpirun", *root, "--oversubscribe", "-n", "3", *engine.command(result, "/bin/cat", "/etc/hostname")],
                     env=engine.environment(result))
    missing = [rank for rank in range(3) if not Server.has_report(f"{result}.{rank}")]
    return told, [] if engine.kind == "native" else missing


PAGE = "<p id=x>none</p><script>document.getElementById('x').textContent = 'sum ' + [1, 2, 3].reduce((a, b) => a + b)</script>"


def browser(engine):
    """In its sandbox, as an ordinary user: renderers have filters, namespaces and no files."""
    folder = driver.fresh(f"{engine.folder}/browser")
    user = account_for_tests()
    with open(f"{folder}/page.html", "w") as f:
        f.write(PAGE)
    if user:
        shutil.chown(folder, user)
    result = f"{folder}/result"
    as_user = ["runuser", "-u", user, "--", "env", f"HOME={folder}", f"XDG_RUNTIME_DIR={folder}"] if user else []
    command = engine.command(result, "/usr/bin/chromium", "--headless", "--disable-gpu", "--no-first-run",
                             f"--user-data-dir={folder}/data", "--dump-dom", f"file://{folder}/page.html")
    done = subprocess.run(as_user + command, capture_output=True, text=True, timeout=5 * LIMIT, stdin=subprocess.DEVNULL,
                          env=driver.ENVIRONMENT | {"HOME": folder})
    told = f"{done.stdout} status {done.returncode}"
    reports = [name for name in glob.glob(f"{result}*") if Server.has_report(name)]
    return told, [] if engine.kind == "native" or len(reports) > 5 else ["of most processes"]


CASES = {
    "redis": (redis, ["/usr/bin/redis-server", "/usr/bin/redis-benchmark"]),
    "nginx": (nginx, ["/usr/sbin/nginx", "/usr/bin/ab"]),
    "postgres": (postgres, [f"{postgres_folder()}/initdb"]),
    "ssh": (ssh, ["/usr/sbin/sshd", "/usr/bin/ssh"]),
    "mpi": (mpi, ["/usr/bin/mpirun"]),
    "browser": (browser, ["/usr/bin/chromium"]),
}


def check(case, folder, options, native):
    def compare(kind):
        here = Engine(kind, options.build, driver.fresh(f"{folder}/{kind}"))
        os.chmod(here.folder, 0o755)
        told, missing = case(here)
        if kind == "native":
            native.append(told)
        elif told != native[0]:
            raise driver.Failed("answers differ", f"native: {native[0][-700:]}", f"here:   {told[-700:]}")
        if missing:
            raise driver.Failed(f"no report of {missing}")
    return compare


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--browser", action="store_true", help="chromium too")
    options = parser.parse_args()
    with driver.Results("servers", options) as results:
        os.chmod(results.folder, 0o755)
        for name, (case, needs) in CASES.items():
            if not driver.chosen(name, options) or (name == "browser") > options.browser:
                continue
            lacking = [path for path in needs if not os.path.exists(path)]
            if lacking:
                results.skip(name, f"needs {lacking[0]}")
                continue
            native = []
            folder = driver.fresh(f"{results.folder}/{name}")
            os.chmod(folder, 0o755)
            compare = check(case, folder, options, native)
            results.count(f"{name} native", driver.problem(compare, "native"))
            for kind in ("jit", "rewrite") if native and name != "browser" else ("jit",) if native else ():
                results.count(f"{name} {kind}", driver.problem(compare, kind))
    return results.status


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
"""Tools come and go in servers under load: no request is lost or wrong, what is entered is left, and when the tool has gone
the code is what the files hold.

  tests/live/servers.py [--build DIR] [--only PATTERN] [--cycles N] [--keep]

redis-server under redis-benchmark, nginx, haproxy and apache2 under ab (apache2 begins anew gracefully now and then),
memcached under a client of its own, PostgreSQL's back ends under pgbench. In each cycle a tool with counters
at the entry and the exits of each procedure of the program and of the C library (balance_tool.c) is put in, its report is
read, and it is taken out. Before and behind all cycles the server is at rest; for the last time the tool is in it from one
rest to the other.
"""

import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../support", f"{HERE}/../servers"]
import driver  # noqa: E402
import importlib.util  # noqa: E402
import out as outside  # noqa: E402
import run as live  # noqa: E402
from driver import Failed  # noqa: E402

spec = importlib.util.spec_from_file_location("servers_run", f"{HERE}/../servers/run.py")
servers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(servers)

# Left otherwise than by a return or a jump: what does not come back, and what makes or ends threads and processes.
NEVER_LEFT = re.compile(r"longjmp|_exit|abort|unwind|start_thread|clone|_start|setcontext|Fork|sigreturn|restore_rt")


def lives(pid):
    """One that ends has no memory any more while it is not yet seen to have ended."""
    try:
        with open(f"/proc/{pid}/stat") as f, open(f"/proc/{pid}/maps") as maps:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX" and bool(maps.read(1))
    except OSError:
        return False


def footprint(pid):
    """(mappings, descriptors, megabytes in memory)"""
    with open(f"/proc/{pid}/status") as f:
        resident = int(re.search(r"^VmRSS:\s+(\d+)", f.read(), re.M)[1])
    return len(list(outside.mappings(pid))), len(os.listdir(f"/proc/{pid}/fd")), resident >> 10


WARM = 20  # cycles
MAY_GROW = 10, 25, 16


class Load:
    """A client that asks all the time, started again when it has come to its end."""

    def __init__(self, command, is_good, folder):
        self.command, self.is_good, self.path, self.rounds = command, is_good, f"{folder}/load", 0
        self.process = None
        self.limit = live.LIMIT  # seconds

    def begin(self):
        self.file = open(self.path, "w+")
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.file, stderr=self.file,
                                        env=driver.ENVIRONMENT)

    def look(self, wait=False):
        """Ended ones must have been served well."""
        if self.process is None or (self.process.poll() is None and not wait):
            return
        self.process.wait(self.limit)
        self.file.seek(0)
        said = self.file.read()
        self.file.close()
        self.rounds += 1
        if self.process.returncode or not self.is_good(said):
            raise Failed(f"the client ends with {self.process.returncode} in round {self.rounds}", *said.splitlines()[-25:])
        self.process = None


class Session:
    """A client of PostgreSQL's that stays, and its back end with it. Each turn reads what the turn before has written."""

    def __init__(self, command):
        self.process = subprocess.Popen(command + ["-qAt", "postgres"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        bufsize=1)
        self.pid, self.turns, self.rounds = int(self.ask("select pg_backend_pid();")), 0, 0
        self.ask("create table kept (turns int); insert into kept values (0); select 1;")

    def ask(self, statements):
        self.process.stdin.write(statements + "\n")
        return self.process.stdout.readline().rstrip("\n")

    def begin(self):
        for _ in range(1000):
            self.turns += 1
            said = self.ask("begin; update kept set turns = turns + 1; select turns, (select count(*) from pgbench_tellers t "
                            "join pgbench_branches b using (bid)) from kept; commit;")
            if said != f"{self.turns}|10":
                raise Failed(f"a back end answers {said} in turn {self.turns}")

    def look(self, wait=False):
        self.rounds += 1

    def end(self):
        self.process.stdin.close()
        if self.process.wait(live.LIMIT):
            raise Failed(f"psql ends with {self.process.returncode}")


class Servers(outside.Out):
    transactions = 20000, []  # of each of pgbench's clients; its options

    def __init__(self, options, folder):
        options.all = False
        super().__init__(options, folder)
        self.cycles, self.counted_cycles, self.whole_cycles = options.cycles, 0, 0
        self.tool = f"{folder}/balance"
        made = driver.run([self.inlay, "cc", "-O2", f"{HERE}/balance_tool.c", "-o", self.tool], live.LIMIT)
        if made.status:
            raise Failed("compile", *driver.as_lines(made.stderr))

    def report_of(self, pid):
        os.makedirs(f"{self.folder}/reports", exist_ok=True)
        os.chmod(f"{self.folder}/reports", 0o777)  # the server writes it, whoever it runs as
        return f"{self.folder}/reports/{pid}"

    def put_in(self, pid, image):
        self.attach(self.tool, pid, "--image", image, "--image", "libc.so*", "-o", self.report_of(pid))

    def take_out(self, pid):
        self.inside("detach", pid)
        path = self.report_of(pid)
        with open(path) as f:
            report = f.read()
        os.unlink(path)
        return report

    def under_load(self, load, pids, image, stays=None):
        """`pids` are asked for each time: back ends come and go. `stays`: a process that does not."""
        self.counted_cycles = self.whole_cycles = 0
        began, early = time.monotonic(), None
        for k in range(self.cycles):
            if load.process is None:
                load.begin()
            for pid in pids(k):
                self.cycle(pid, image)
            load.look()
            if k == min(WARM, self.cycles // 2) and stays:
                early = footprint(stays)
        print(f"{(time.monotonic() - began) / self.cycles:.2f} s a cycle")
        if stays:
            self.has_not_grown(early, footprint(stays))
        load.look(wait=True)
        print(f"{self.whole_cycles} of {self.cycles} cycles were whole, {self.counted_cycles} counted, {load.rounds} rounds")
        if 2 * self.whole_cycles < self.cycles or not self.counted_cycles:
            raise Failed("too few cycles could be made")

    @staticmethod
    def has_not_grown(early, late):
        """The load has a hand in both: it may have mapped a little, and its connections come and go."""
        print(f"mappings, descriptors, MB: {early}, {late}")
        if any(more > less + may for less, more, may in zip(early, late, MAY_GROW)):
            raise Failed(f"it grows from cycle to cycle: mappings, descriptors, MB were {early} and are {late}")

    def cycle(self, pid, image):
        """Back ends may end at any time, and then cannot be asked."""
        try:
            self.put_in(pid, image)
            self.counted_cycles += int(re.search(r"^sums (\d+)", self.inside("report", pid), re.M)[1]) > 0
            self.take_out(pid)
            self.untouched(pid)
            self.whole_cycles += 1
        except (Failed, FileNotFoundError):
            if lives(pid):
                raise

    def at_rest(self, load, pid, image):
        """Entries are exits, but for the frames that one rest begins with and the other ends with."""
        self.put_in(pid, image)
        load.begin()
        load.look(wait=True)
        time.sleep(1)
        report = self.take_out(pid)
        wrong = []
        for line in report.splitlines():
            name, entries, exits = line.rsplit(" ", 2)
            if name != "sums" and abs(int(entries) - int(exits)) > 1 and not NEVER_LEFT.search(name):
                wrong.append(line)
        sums = re.search(r"^sums (\d+) (\d+)", report, re.M)
        print(f"at rest: {sums[1]} entries, {sums[2]} exits, {load.rounds} rounds of the client")
        if wrong or int(sums[1]) < 1000:
            raise Failed(f"{len(wrong)} procedures are not balanced ({sums[0]})", *wrong[:20])
        self.untouched(pid)

    def untouched(self, pid):
        wrong = outside.wrong_code(pid)
        if wrong:
            raise Failed(wrong)

    # --- each server

    def redis(self):
        folder = driver.fresh(f"{self.folder}/redis")
        socket = f"{folder}/socket"
        server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder],
                                  stdout=subprocess.DEVNULL)
        try:
            while not os.path.exists(socket):
                time.sleep(0.05)
            # each turn of the script reads what the turn before has written: a wrong answer is an error
            script = ("local n = redis.call('incr', KEYS[1]); local k = KEYS[1] .. n % 50; local was = redis.call('get', k); "
                      "if was and tonumber(was) ~= n - 50 then return redis.error_reply('wrong') end; "
                      "redis.call('set', k, n); return n")
            load = Load(["redis-benchmark", "-s", socket, "-n", "60000", "-q", "-c", "20", "eval", script, "1", "key"],
                        lambda said: "requests per second" in said, folder)
            self.under_load(load, lambda k: [server.pid], "redis-server", server.pid)
            self.at_rest(load, server.pid, "redis-server")
            count = subprocess.run(["redis-cli", "-s", socket, "get", "key"], capture_output=True, text=True).stdout
            if int(count) != 60000 * load.rounds:
                raise Failed(f"{count.strip()} requests of {60000 * load.rounds} were served")
        finally:
            server.kill()
            server.wait()

    def nginx(self):
        folder = driver.fresh(f"{self.folder}/nginx")
        port, user = servers.free_port(), servers.account_for_tests()
        os.chmod(self.folder, 0o755)
        os.chmod(folder, 0o755)
        with open(f"{folder}/conf", "w") as f:
            f.write(servers.NGINX.format(folder=folder, port=port, user=f"user {user} nogroup;" if user else ""))
        with open(f"{folder}/page.html", "w") as f:
            f.write("<p>a page\n" * 500)
        server = subprocess.Popen(["/usr/sbin/nginx", "-p", folder, "-c", f"{folder}/conf"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        try:
            while not servers.answers(port):
                time.sleep(0.05)
            load = Load(["ab", "-q", "-n", "20000", "-c", "10", f"http://127.0.0.1:{port}/page.html"],
                        lambda said: re.search(r"Complete requests: +20000\b", said) and "Failed requests:        0" in said and
                        "Non-2xx" not in said and "HTML transferred:       100000000 bytes" in said, folder)
            workers = servers.children_of(server.pid)
            self.under_load(load, lambda k: [workers[k % len(workers)]], "nginx", workers[0])
            self.at_rest(load, workers[0], "nginx")
            self.untouched(workers[1])
            if sorted(servers.children_of(server.pid)) != sorted(workers):
                raise Failed("a worker has ended")
        finally:
            server.send_signal(signal.SIGQUIT)
            server.wait()

    def memcached(self):
        folder = driver.fresh(f"{self.folder}/memcached")
        socket = f"{folder}/socket"
        server = subprocess.Popen(["memcached", "-s", socket, "-t", "4", "-m", "64"] +
                                  (["-u", servers.account_for_tests()] if os.geteuid() == 0 else []))
        os.chmod(self.folder, 0o755)
        os.chmod(folder, 0o777)
        try:
            while not os.path.exists(socket):
                time.sleep(0.05)
            load = Load([sys.executable, "-c", MEMCACHED_CLIENT, socket], lambda said: said == "40000 right\n", folder)
            self.under_load(load, lambda k: [server.pid], "memcached", server.pid)
            self.at_rest(load, server.pid, "memcached")
        finally:
            server.kill()
            server.wait()

    def web(self, name, command, folder, port, pids):
        """One that answers with 5,000 bytes; `pids`: of its workers, asked for each time."""
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not servers.answers(port):
                time.sleep(0.05)
            load = Load(["ab", "-q", "-n", "20000", "-c", "10", f"http://127.0.0.1:{port}/page.html"],
                        lambda said: re.search(r"Complete requests: +20000\b", said) and "Failed requests:        0" in said and
                        "Non-2xx" not in said and "HTML transferred:       100000000 bytes" in said, folder)
            self.under_load(load, lambda k: pids(server, k), name)
            self.at_rest(load, pids(server, 0)[0], name)
        finally:
            server.terminate()
            server.wait()

    def haproxy(self):
        folder, port = driver.fresh(f"{self.folder}/haproxy"), servers.free_port()
        with open(f"{folder}/page.html", "w") as f:
            f.write("<p>a page\n" * 500)
        with open(f"{folder}/conf", "w") as f:
            f.write(HAPROXY.format(folder=folder, port=port))
        self.web("haproxy", ["/usr/sbin/haproxy", "-db", "-f", f"{folder}/conf"], folder, port, lambda server, k: [server.pid])

    def apache2(self):
        """Its children end, and others begin, each time that it is asked to."""
        folder, port = driver.fresh(f"{self.folder}/apache2"), servers.free_port()
        os.chmod(self.folder, 0o755)
        os.chmod(folder, 0o755)
        user = servers.account_for_tests()
        with open(f"{folder}/page.html", "w") as f:
            f.write("<p>a page\n" * 500)
        with open(f"{folder}/conf", "w") as f:
            f.write(APACHE.format(folder=folder, port=port, user=f"User {user}\nGroup nogroup" if user else ""))

        def child(server, k):
            if k % 10 == 5:
                server.send_signal(signal.SIGUSR1)
                time.sleep(0.5)
            found = servers.children_of(server.pid)
            return [found[k % len(found)]] if found else []

        self.web("apache2", ["/usr/sbin/apache2", "-DFOREGROUND", "-f", f"{folder}/conf"], folder, port, child)

    def postgres(self):
        binaries, user = servers.postgres_folder(), "postgres" if os.geteuid() == 0 else None
        folder = driver.fresh(f"{self.folder}/postgres")
        os.chmod(self.folder, 0o755)
        if user:
            shutil.chown(folder, user)
        as_user = ["runuser", "-u", user, "--"] if user else []
        made = servers.output_of(as_user + [f"{binaries}/initdb", "-D", f"{folder}/data", "-A", "trust", "-N"])
        if not made.endswith("status 0"):
            raise Failed("initdb", made[-1000:])
        server = subprocess.Popen([f"{binaries}/postgres", "-D", f"{folder}/data", "-k", folder, "-c", "listen_addresses=", "-c",
                                   "fsync=off"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user,
                                  group=user and pwd.getpwnam(user).pw_gid, extra_groups=[] if user else None)
        at = ["-h", folder]
        try:
            while not servers.output_of(as_user + [f"{binaries}/pg_isready", "-q"] + at).endswith("status 0"):
                time.sleep(0.1)
            servers.output_of(as_user + [f"{binaries}/pgbench", "-i", "-q"] + at + ["postgres"])
            each, more = self.transactions
            load = Load(as_user + [f"{binaries}/pgbench", "-n", "-c", "3", "-t", str(each)] + more + at + ["postgres"],
                        lambda said: f"actually processed: {3 * each}/{3 * each}\n" in said and
                        "failed transactions: 0 " in said, folder)
            load.limit = 900
            helpers = set(servers.children_of(server.pid))
            self.under_load(load, lambda k: self.back_end(server, helpers, k), "postgres", server.pid)
            wrong = self.sums(as_user, binaries, at, load.rounds * 3 * each)
            if wrong:
                raise Failed(wrong)
            self.untouched(server.pid)
            session = Session(as_user + [f"{binaries}/psql"] + at)
            self.at_rest(session, session.pid, "postgres")
            session.end()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()

    @staticmethod
    def back_end(server, helpers, k):
        """The postmaster itself now and then: its next children have the tool from the beginning."""
        if k % 10 == 9:
            return [server.pid]
        for _ in range(100):
            found = [pid for pid in servers.children_of(server.pid) if pid not in helpers]
            if found:
                return [found[k % len(found)]]
            time.sleep(0.02)
        return []

    @staticmethod
    def sums(as_user, binaries, at, transactions):
        query = ("select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history) and "
                 "(select sum(tbalance) from pgbench_tellers) = (select sum(bbalance) from pgbench_branches), "
                 "(select count(*) from pgbench_history)")
        told = servers.output_of(as_user + [f"{binaries}/psql"] + at + ["-Atc", query, "postgres"])
        return None if told == f"t|{transactions}\nstatus 0" else f"the accounts are wrong: {told} of {transactions}"


MEMCACHED_CLIENT = """
import socket, sys, threading
right = []
def one(number):
    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); f = s.makefile("rwb")
    for k in range(5000):
        key, value = b"%d-%d" % (number, k % 50), b"%d" % k * 20
        f.write(b"set %s 0 0 %d\\r\\n%s\\r\\nget %s\\r\\n" % (key, len(value), value, key)); f.flush()
        said = [f.readline() for _ in range(4)]
        if said == [b"STORED\\r\\n", b"VALUE %s 0 %d\\r\\n" % (key, len(value)), value + b"\\r\\n", b"END\\r\\n"]:
            right.append(1)
threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(right), "right")
"""
HAPROXY = """global
    nbthread 2
defaults
    mode http
    timeout client 60s
    timeout server 60s
    timeout connect 60s
frontend all
    bind 127.0.0.1:{port}
    http-request return status 200 content-type text/html file {folder}/page.html
"""
APACHE = """ServerRoot {folder}
Listen 127.0.0.1:{port}
ServerName localhost
PidFile {folder}/pid
ErrorLog {folder}/error
{user}
DocumentRoot {folder}
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
StartServers 2
"""
NEEDS = {"memcached": ["/usr/bin/memcached"], "haproxy": ["/usr/sbin/haproxy", "/usr/bin/ab"],
         "apache2": ["/usr/sbin/apache2", "/usr/bin/ab"],
         "redis": ["/usr/bin/redis-server", "/usr/bin/redis-benchmark"], "nginx": ["/usr/sbin/nginx", "/usr/bin/ab"],
         "postgres": [f"{servers.postgres_folder()}/initdb"]}


def check_all(tests, options, results):
    for name, needs in NEEDS.items():
        lacking = [path for path in needs if not os.path.exists(path)]
        if driver.chosen(name, options) and lacking:
            results.skip(name, f"needs {lacking[0]}")
        elif driver.chosen(name, options):
            results.check(name, getattr(tests, name))


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--cycles", type=int, default=1000)
    options = parser.parse_args()
    with driver.Results("live-servers", options) as results:
        check_all(Servers(options, results.folder), options, results)
    return results.status


if __name__ == "__main__":
    sys.exit(main())

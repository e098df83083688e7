#!/usr/bin/python3
"""Random snippets, in a program, under every engine: what a C compiler says they do, and nothing else.

  tests/snippets/random_texts.py [--build DIR] [--count N] [--seed N] [--engines jit,rewrite,attach,live]

Each part makes a program of 500 texts (around.c) and runs it natively from the compiler's functions, with the snippets
beside: under the JIT, rewritten, by the live engine from its start on, and with the tool attached while it waits for its
first line. It compares variables, registers, flags, vector registers and the red zone.
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402

ENGINES = ("jit", "rewrite", "attach", "live")
PART = 500
LIMIT = 600
PLAIN = ("adc %rbx, %rax; inc %rcx", "mov %rax, %rdx; lea 5(%rdx), %rdx", "addps %xmm1, %xmm0; cmp %rsi, %rdi; setl %al",
         "lea (%rax, %rbx, 2), %r8; test %r9, %r10; cmovs %r11, %r12")


def points(count):
    """Assembly: the procedures that have the snippets, and what each would be without."""
    lines = [".text"]
    names = [f"p{n}" for n in range(count)] + [f"q{n}" for n in range(4)]
    for n, name in enumerate(names):
        body = PLAIN[int(name[1:]) % 4]
        lines += [".p2align 4", f".globl {name}", f".type {name}, @function", f"{name}: {body}; ret", ".skip 8, 0xcc",
                  f".size {name}, . - {name} - 8"]
    lines += [".section .data.rel.ro, \"aw\"", ".globl points, plain", "points:"]
    lines += [f".quad p{n}" for n in range(count)] + ["plain:"] + [f".quad q{n}" for n in range(4)]
    lines += [".section .note.GNU-stack, \"\", @progbits"]
    return "\n".join(lines) + "\n"


class Part:
    def __init__(self, options, folder, seed, count):
        self.options, self.folder, self.count = options, f"{folder}/{seed}", count
        self.inlay, self.line = f"{options.build}/inlay", b"own\n" if options.own else b"go\n"
        os.mkdir(self.folder)
        self.call(f"{options.build}/tests/unit/snippet_generate", self.folder, str(count), str(seed))
        with open(f"{self.folder}/points.S", "w", encoding="utf-8") as f:
            f.write(points(count))
        flags = ["-g", "-w", "-fwrapv", "-ffp-contract=off", "-std=gnu11", f"-I{self.folder}", f"-I{HERE}"]
        parts = [f"{HERE}/around.c", f"{HERE}/state_x86_64.c", f"{HERE}/state_x86_64.S", f"{self.folder}/points.S",
                 f"{self.folder}/routines.c", f"{self.folder}/functions.c"]
        self.call("cc", "-O0", *flags, *parts, "-o", f"{self.folder}/around")
        self.call(self.inlay, "cc", "-O1", "-w", f"-I{self.folder}", f"{HERE}/random_tool.c", f"{self.folder}/routines.c",
                  "-ffp-contract=off", "-o", f"{self.folder}/random")

    def call(self, *command):
        done = driver.run(list(command), LIMIT)
        if done.status != 0:
            raise driver.Failed(f"{' '.join(command)[:200]} ended with {done.status}", done.stderr.decode(errors="replace")[-900:])
        return done

    def check(self, answer, said=""):
        text = answer.decode(errors="replace")
        if text.split("\n")[-2:] != [f"{self.count} agree", ""]:
            with open(f"{self.folder}/texts", encoding="utf-8") as f:
                lines = f.read().splitlines()
            wrong = [n for n in text.splitlines()[1:] if n[0].isdigit() and ":" in n][:3]
            more = [f"{n}\n    {lines[int(n.split(':')[0])]}" for n in wrong]
            raise driver.Failed(f"not {self.count} agree", "\n".join(more) + text[-200:] + said[-900:])

    def tool(self, *before):
        more = ["--own"] if self.options.own else []
        return [self.inlay, *before, f"{self.folder}/random", f"--texts={self.folder}/texts", *more]

    def run(self, command):
        done = subprocess.run(command, input=self.line, capture_output=True, timeout=LIMIT, check=False)
        self.check(done.stdout, done.stderr.decode(errors="replace"))

    def jit(self):
        self.run([*self.tool("run"), "--", f"{self.folder}/around"])

    def rewrite(self):
        self.call(*self.tool("rewrite"), f"{self.folder}/around", "-o", f"{self.folder}/written")
        self.run([f"{self.folder}/written"])

    def live(self):
        self.run([*self.tool("run", "--engine=live"), "--", f"{self.folder}/around"])

    def attach(self):
        with subprocess.Popen([f"{self.folder}/around"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            try:
                first = process.stdout.readline()
                self.call(*self.tool("attach"), str(process.pid))
                rest, _ = process.communicate(self.line, LIMIT)
            finally:
                process.kill()
        self.check(first + rest)


def part(options, folder, seed, count):
    made = Part(options, folder, seed, count)
    for engine in options.engines.split(","):
        try:
            getattr(made, engine)()
        except driver.Failed as e:
            raise driver.Failed(f"{engine}: {e.args[0]}", *e.args[1:]) from None


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--count", type=int, default=PART)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--own", action="store_true", help="routines that snippets call are the tool's")
    options = parser.parse_args()
    with driver.Results("random", options) as results:
        for first in range(0, options.count, PART):
            count = min(PART, options.count - first)
            results.check(f"{count} from {options.seed + first}",
                          lambda f=first, n=count: part(options, results.folder, options.seed + f, n))
    return results.status


if __name__ == "__main__":
    sys.exit(main())

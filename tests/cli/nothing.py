#!/usr/bin/python3
"""What is asked of no handle (NULL), with a number that is none or for nowhere to put the answer, is answered: by 0,
NULL, false, perhaps with a message, and the program does what it does natively. The calls are made from the public
headers, so a function that is added is among them.

  tests/cli/nothing.py [--build DIR] [--only PATTERN] [--keep]
"""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
# What does not come back, belongs to main, waits, or ends what is being asked; and inlay_frames_*, in the caller's memory.
LEFT_OUT = re.compile(r"inlay_(init|start|mutator|end|resume|option_.*|original|detach|warn|(un)?lock|break_here|use_stdout|"
                      r"json_.*|frames_.*|sums_may_wait|process_(let_go|take_out|terminate|stop|thread_stop)|"
                      r"proc_wrap|proc_replace|call_replace|write|event_next|process_create)")
HANDLES = {"inlay_" + name: "v_" + name for name in
           "block insn proc image module thread loop scope switch buffer local perf point insertion process".split()}
OBJECTS = {"inlay_" + name: "&v_" + name for name in "counter event context value section field".split()}


def prototypes():
    """(name, parameters) of each function of the public headers."""
    done = subprocess.run(["gcc", "-E", f"-I{ROOT}/include", "-include", "inlay.h", "-x", "c", "/dev/null"],
                          capture_output=True, text=True, check=True)
    kept, ours = [], False
    for line in done.stdout.splitlines():
        mark = re.match(r'# \d+ "([^"]+)"', line)
        if mark:
            ours = mark[1].startswith(f"{ROOT}/include")
        elif ours:
            kept.append(line)
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", " ".join(kept))
    for _ in range(2):
        text = re.sub(r"\{[^{}]*\}", " ", text)
    for declaration in text.split(";"):
        found = re.match(r"(?!typedef|enum|struct|extern).*?\b(inlay_\w+)\s*\((.*)\)$", declaration.strip())
        if found and found[2].strip() != "void" and not LEFT_OUT.fullmatch(found[1]):
            yield found[1], [p.strip() for p in re.split(r",(?![^(]*\))", found[2])]


def good(parameter):
    """An argument that is none of the mistakes."""
    if "(*" in parameter or "inlay_reader" in parameter:
        return "(void *)each"
    if parameter.startswith("inlay_expr") and "*" not in parameter:
        return "v_expr"
    if "*" in parameter:
        of = re.sub(r"\bconst\b", "", parameter[:parameter.rindex("*")]).strip()
        return f"(void *)({HANDLES.get(of) or OBJECTS.get(of) or 'room'})"
    return "1"


def calls():
    """Each pointer as NULL alone, all of them, and all numbers as -1."""
    for name, parameters in prototypes():
        usual = [good(p) for p in parameters]
        pointers = [k for k, p in enumerate(parameters)
                    if ("*" in p or p.startswith("inlay_expr")) and not p.endswith("void *arg")]
        sizes = [k for k, p in enumerate(parameters) if re.search(r"\b(bytes|size|room|most|count)$", p)]
        numbers = [k for k, u in enumerate(usual) if u == "1" and k not in sizes]
        for wrong in [[k] for k in pointers] + [pointers, numbers]:
            if wrong:
                arguments = [u if k not in wrong else "0" if k in pointers else "-1" for k, u in enumerate(usual)]
                yield f"{name}({', '.join(arguments)})"


def write_calls(path):
    all_calls = list(dict.fromkeys(calls()))
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"enum {{ CALLS = {len(all_calls)} }};\nstatic const char *const texts[] = {{\n")
        f.writelines(f'"{c}",\n' for c in all_calls)
        f.write("};\nstatic void call(unsigned n)\n{\nswitch (n) {\n")
        f.writelines(f"case {n}: (void){c}; break;\n" for n, c in enumerate(all_calls))
        f.write("}\n}\n")
    return len(all_calls)


def main():
    options = driver.parser(__doc__).parse_args()
    inlay, sample = f"{options.build}/inlay", f"{options.build}/tests/samples/repeats"
    with driver.Results("nothing", options) as results:
        count = write_calls(f"{results.folder}/calls.h")
        if count < 500:
            raise SystemExit(f"only {count} calls were found in the headers")
        native = driver.run([sample], LIMIT, env=driver.ENVIRONMENT)

        def built(name):
            made = driver.run([inlay, "cc", "-w", f"-I{results.folder}", f"{HERE}/{name}.c", "-o",
                               f"{results.folder}/{name}"], LIMIT)
            if made.status:
                raise Failed("does not compile", *driver.as_lines(made.stderr)[:6])
            return f"{results.folder}/{name}"

        def all_made(done, status):
            said = done.stderr.decode(errors="replace")
            if done.status != status or f"made {count}\n" not in said:
                raise Failed(f"status {done.status}", *said.splitlines()[-5:])
            return said

        def in_a_tool():
            tool, new = built("nothing_tool"), f"{results.folder}/new"
            for where in ("block", "image", "exit"):
                all_made(driver.run([inlay, "run", tool, f"--where={where}", "--", sample], LIMIT), native.status)
            all_made(driver.run([inlay, "rewrite", tool, "--where=image", sample, "-o", new], LIMIT), 0)
            said = all_made(driver.run([inlay, "run", "--engine=live", tool, "--where=exit", "--", sample], LIMIT),
                            native.status)
            if "has its new code already; inlay_switched" not in said:
                raise Failed("live: code that is not shown again is not told with what else there is", said[-400:])

        def in_a_mutator():
            with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as cat:
                done = driver.run([built("nothing_mutator"), str(cat.pid)], LIMIT)
                cat.stdin.close()
            said = all_made(done, 0)
            if "let go: this is the handle of no other process" not in said:
                raise Failed("a handle that was let go is taken for one", *said.splitlines()[-3:])

        results.check("tool", in_a_tool)
        results.check("mutator", in_a_mutator)
    return results.status


if __name__ == "__main__":
    sys.exit(main())

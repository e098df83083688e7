"""Objects of many kinds, instrumented whole: other languages, and what compilers' options make of code."""
import os
import shutil

FIB = {
    "gfortran": ("f90", """
module m
contains
  recursive integer function fib(n) result(r)
    integer, intent(in) :: n
    if (n < 2) then
      r = n
    else
      r = fib(n-1) + fib(n-2)
    end if
  end function
end module
program p
  use m
  print *, fib(15)
  print *, "caught"
end program
"""),
    "gnat": ("adb", """
with Ada.Text_IO; use Ada.Text_IO;
procedure Kinds is
   function Fib (N : Integer) return Integer is (if N < 2 then N else Fib (N - 1) + Fib (N - 2));
   procedure Fails (N : Integer) is begin if N > 3 then raise Constraint_Error; end if; end Fails;
begin
   Put_Line (Integer'Image (Fib (15)));
   begin Fails (5); exception when Constraint_Error => Put_Line ("caught"); end;
end Kinds;
"""),
    "gdc": ("d", """
import std.stdio;
int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int fails(int n) { if (n > 3) throw new Exception("x"); return n; }
void main() { writeln(fib(15)); try { fails(5); } catch (Exception e) { writeln("caught"); } }
"""),
    "rustc": ("rs", """
#[inline(never)] fn fib(n: u64) -> u64 { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } }
#[inline(never)] fn fails(n: u64) -> u64 { if n > 3 { panic!("x") } n }
fn main() {
    println!("{}", fib(15));
    std::panic::set_hook(Box::new(|_| {}));
    if std::panic::catch_unwind(|| fails(5)).is_err() { println!("caught") }
}
"""),
}
LINKER = """#!/bin/sh
for a; do
    case $a in *.rcgu.o) "{inlay}" object --all --report=/dev/null "$a" -o "$a.new.o" && mv "$a.new.o" "$a" || exit 1 ;; esac
done
exec cc "$@" -L"{build}" -linlay-trace -lc
"""


def build(t, compiler, name, folder):
    """The program, by the commands that this language's compiler wants."""
    recorder, program = [f"-L{t.build}", "-linlay-trace"], f"{folder}/kinds"
    if compiler == "rustc":
        with open(f"{folder}/link-cc", "w", encoding="utf-8") as f:
            f.write(LINKER.format(inlay=t.inlay, build=os.path.abspath(t.build)))
        os.chmod(f"{folder}/link-cc", 0o755)
        t.command(["rustc", "-O", "-C", f"linker={folder}/link-cc", name, "-o", program], cwd=folder)
    elif compiler == "gnat":
        t.command(["gnatmake", "-q", "-c", name], cwd=folder)
        t.command([t.inlay, "object", "--all", "kinds.o", "-o", "new.o", "--report=/dev/null"], cwd=folder)
        os.rename(f"{folder}/new.o", f"{folder}/kinds.o")
        t.command(["gnatbind", "kinds.ali"], cwd=folder)
        t.command(["gnatlink", "kinds.ali", "-o", program, *(os.path.abspath(w) if w.startswith("/") else w for w in recorder)], cwd=folder)
    else:
        t.command([compiler, "-O1", "-c", name, "-o", "kinds.o"], cwd=folder)
        t.command([t.inlay, "object", "--all", "kinds.o", "-o", "new.o", "--report=/dev/null"], cwd=folder)
        t.command([compiler, "new.o", *recorder, "-o", program], cwd=folder)
    return program


def check_language(t, compiler, need):
    """What it prints, and an exception of the language's own that passes instrumented procedures."""
    folder, (end, text) = f"{t.folder}/{compiler}", FIB[compiler]
    os.makedirs(folder)
    with open(f"{folder}/kinds.{end}", "w", encoding="utf-8") as f:
        f.write(text)
    out = f"{folder}/kinds.trace"
    shown = t.command([build(t, compiler, f"kinds.{end}", folder)], env=os.environ | {"INLAY_OUT": out}).stdout.split()
    need(shown == ["610", "caught"], "the output", shown)
    found = {row["name"]: row["calls"] for row in t.report(out)["procedures"]}
    # Compilers unroll recursion; the calls that there are count.
    need(max((n for name, n in found.items() if "fib" in name.lower()), default=0) >= 100, "calls", found)
    need(compiler == "gfortran" or any("fails" in name.lower() for name in found), "the one that raises", found)


def tests(t, need, results):
    for compiler in FIB:
        if shutil.which(compiler):
            yield f"language {compiler}", lambda c=compiler: check_language(t, c, need)
        else:
            results.skip(f"language {compiler}", f"{compiler} is not there")

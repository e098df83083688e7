"""The benchmark's inputs: made here, always the same, kept in the scratch folder between runs.

Nothing is downloaded and nothing depends on the machine, so that two people's ratios can be
compared. A generator writes to a temporary name and renames, so a file that exists is complete.
Everything is streamed: this process stays small, because the kernel counts a parent's memory into
the peak memory of the children it starts.
"""

import os
import random

WORDS = 6000
PHRASES = 2000
PHRASE_LOW, PHRASE_HIGH = 6, 14
MEGABYTE = 1 << 20


def make(path, write):
    """Calls write(file) unless `path` is there already; returns path."""
    if not os.path.exists(path):
        partial = f"{path}.{os.getpid()}"
        with open(partial, "w", encoding="ascii") as f:
            write(f)
        os.rename(partial, path)
    return path


def _vocabulary(rng):
    """Words made of syllables, short ones first, as frequent words are."""
    heads = "b c d f g h k l m n p r s t v w st tr pl sh th gr br".split()
    tails = "a e i o u ai ea ou en er on in al or".split()
    words = set()
    while len(words) < WORDS:
        syllables = rng.choice((1, 1, 2, 2, 2, 3, 3, 4))
        words.add("".join(rng.choice(heads) + rng.choice(tails) for _ in range(syllables)))
    return sorted(words, key=lambda w: (len(w), w))


def text(size):
    """Lines of phrases. Words, and phrases made of them, have the frequencies of natural language
    (Zipf), so that compressors find matches of many lengths."""

    def write(f):
        rng = random.Random(1994)
        words = _vocabulary(rng)
        word_sums = _zipf(WORDS)
        phrases = [
            " ".join(rng.choices(words, cum_weights=word_sums, k=rng.randint(PHRASE_LOW, PHRASE_HIGH)))
            for _ in range(PHRASES)
        ]
        phrase_sums = _zipf(PHRASES)
        written = 0
        while written < size:
            lines = []
            for _ in range(2000):
                line = rng.choices(phrases, cum_weights=phrase_sums, k=rng.randint(2, 4))
                if rng.random() < 0.2:
                    line.append(str(rng.randint(1, 9999)))
                lines.append(" ".join(line).capitalize() + rng.choice(".....,;?"))
            chunk = "\n".join(lines) + "\n"
            f.write(chunk[: size - written])
            written += len(chunk)

    return write


def _zipf(count):
    sums, total = [], 0.0
    for rank in range(count):
        total += 1 / (rank + 2.7)
        sums.append(total)
    return sums


def sql(rows):
    """Inserts in one transaction, an index, and queries that group, join and sort."""

    def write(f):
        rng = random.Random(1995)
        f.write("create table sale(id integer primary key, shop int, item text, price real);\n")
        f.write("begin;\n")
        for i in range(rows):
            f.write(
                f"insert into sale values({i},{rng.randint(1, 200)},"
                f"'item{rng.randint(1, 3000)}',{rng.randint(100, 99999) / 100});\n"
            )
        f.write("commit;\n")
        f.write("create index by_item on sale(item, price);\n")
        f.write("select shop, count(*), round(sum(price), 2) from sale group by shop;\n")
        f.write(
            "select item, count(*) n, round(max(price), 2) from sale"
            " group by item order by n desc, item limit 50;\n"
        )
        f.write(
            "select count(*) from sale a join sale b on a.item = b.item"
            " where a.shop = 7 and b.shop = 9 and a.price < b.price;\n"
        )

    return write


def c_functions(count):
    """A preprocessed C file of small functions: loops, switches, structures, calls, floats."""

    def write(f):
        rng = random.Random(1996)
        f.write("struct node { struct node *next; int key; long value; double weight; };\n")
        f.write("extern long work(long, long);\nextern long table[256];\n")
        for i in range(count):
            f.write(_c_function(rng, i))

    return write


def _c_function(rng, i):
    a, b, c, d = (rng.randint(2, 97) for _ in range(4))
    call = f"f{rng.randrange(i)}(p->next, n - {a}, x)" if i % 2 else "work(n, x)"
    cases = "".join(
        f"        case {k}: s += x * {rng.randint(2, 50)} - (n >> {rng.randint(1, 7)}); "
        + ("break;\n" if rng.random() < 0.7 else "/* falls through */\n")
        for k in range(rng.randint(1, 3))
    )
    loop = rng.choice((
        f"for (int i = 0; i < n; i++) s = s * 31 + (table[i & 255] > x ? {d} : x * {c});",
        f"while (n > {a}) {{ n -= {rng.randint(1, 9)}; s += table[s & 255] * (n + {b}); }}",
        "",
    ))
    return f"""
long f{i}(struct node *p, long n, long x)
{{
    long s = {a};
    for (struct node *q = p; q; q = q->next) {{
        switch ((q->key + {a}) & 7) {{
{cases}        default: s -= q->value;
        }}
    }}
    {loop}
    if (s & {1 << rng.randint(0, 6)}) s += {call};
    return s + (long)(p->weight * {b}.5);
}}
"""


PERL = r"""
my %count;
while (<>) {
    for my $word (split /[^A-Za-z]+/) { $count{lc $word}++ if length $word }
}
my @order = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
printf "%8d %s\n", $count{$_}, $_ for @order[0 .. 99];
"""

PYTHON = r"""
import json
import re


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(fib(FIB))
rows = [
    {"id": i, "name": "name%d" % (i % 977), "tags": ["t%d" % (i * k % 31) for k in range(3)],
     "value": i * 0.25}
    for i in range(ROWS)
]
text = json.dumps(rows)
back = json.loads(text)
print(len(text), sum(r["id"] for r in back), len({t for r in back for t in r["tags"]}))
word = re.compile(r"name(\d+)\D+t(\d)")
total = 0
for m in word.finditer(text):
    total += int(m.group(1)) * int(m.group(2))
print(total, len(re.sub(r"[aeiou]", "", text)))
"""

LUA = r"""
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
print(fib(FIB))

local seed = 42
local function random(n) seed = (seed * 1103515245 + 12345) % 2147483648 return seed % n end

local list = {}
for i = 1, ITEMS do list[i] = random(1000000) end
table.sort(list)
table.sort(list, function(a, b) return a % 1000 < b % 1000 or (a % 1000 == b % 1000 and a < b) end)
print(list[1], list[#list])

local parts = {}
for i = 1, ITEMS do parts[#parts + 1] = string.format("%d:%s", list[i], ("x"):rep(i % 7)) end
local text = table.concat(parts, " ")
local sum = 0
for number, xs in text:gmatch("(%d+):(x*)") do sum = sum + tonumber(number) * #xs end
print(#text, sum, (text:gsub("x+", "y")):len())
"""

GAWK = r"""
{
    fields += NF
    for (i = 1; i <= NF; i++) { length_of[length($i)]++; count[$i]++ }
}
END {
    for (word in count) if (count[word] > most) { most = count[word]; which = word }
    print NR, fields, length(count), most, which
    for (n = 1; n <= 20; n++) print n, length_of[n] + 0
}
"""


def script(source, **numbers):
    """Writes a program's text with its sizes filled in."""
    for name, value in numbers.items():
        source = source.replace(name, str(value))
    return lambda f: f.write(source.lstrip("\n"))

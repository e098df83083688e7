#!/usr/bin/env python3
"""Makes a64_tables.c and a64_tables.h of the rows in table/*.txt, which follow the order of the manual.

One row is one encoding:

    f00100010hiiiiiiiiiiiinnnnnddddd add.imm      Rd+,Rn+,#a12               w:nzcv
    bits, 31 first                   name.form    operands                   attributes

Letters stand for bits that vary; where a row's bits have another meaning than its operands say, nothing is lost:
such bits are "free" and carried along as they are. Where rows overlap, the one with more fixed bits wins.

Operands, as written in assembly. A leading = says written, & read and written; else registers called d are
written and all others read.
  Rd Wd Xd         general register: of 4 or 8 bytes by the bit f, of 4, of 8. The field: d or t (bits 0-4), n (5-9),
                   m or s (16-20), a or t2 (10-14). Number 31 is the zero register, with a + the stack pointer
  Rm/s Rm/e        shifted (type 22-23, amount 10-15), extended (how 13-15, amount 10-12); Rs*2: and the next one
  Bd Hd Sd Dd Qd   vector register of 1 to 16 bytes. Scalars: Fd 4, 8, 2 bytes by bits 22-23, Td 1 to 8 by these, Ld
                   twice that, Ud 4 or 8 by bit 22, Id 1 to 8 by the first one of bits 19-22, Jd twice that
  Vd Ed            8 or 16 bytes by bit 30; of which an element is meant; Hm4: its number has 4 bits; Vt*4: and
                   those that follow
  #10.12*8         immediate: first bit, width, scale; #s10.12 signed
  #a12 #bm #w16    of add and sub (shifted by 12 with bit 22), bit mask, move wide (shifted by 16 times bits 21-22)
  #bit #fp8 #vi    of tbz, of fmov, of movi and its like; #0: a zero that is no field
  cond0 cond12     condition, in the bits from there on;  cn cm sysreg: of system instructions
  @26 @19 @14      branch target, of so many bits
  m.FORM.SIZE      memory. Form: b base only (register n), t likewise (register t), u12 scaled offset, s9 offset, r
                   register offset, p7 of pairs, g9 of tags, lit relative to the program counter, pac; with post and
                   pre the base is changed, vpost by the size or a register; adr is an address alone. Size in bytes:
                   a number, f (4 or 8 by the bit f), f2 (twice that), 2v (2 vectors of 8 or 16), 2z (2 elements by
                   bits 10-11), ? unknown; then r, w, rw or p (prefetch)

Attributes: the kind of control flow (isa_flow); r: w: rw: and flags (nzcv, some of them, cond: by the condition),
x0..x30, sp, tls, fpsr; fpsr alone: floating-point arithmetic; system, priv, barrier, pred, atomic, exload, exstore,
monitor; !ab=01: bits a and b are not 0 and 1, else this is no instruction.
"""
import re
import sys

FIELDS = {'d': 0, 't': 0, 'n': 5, 'm': 16, 's': 16, 'a': 10, 't2': 10}
VECTORS = {'B': 1, 'H': 2, 'S': 4, 'D': 8, 'Q': 16}
FLOWS = {'jump': 'JUMP', 'cond': 'COND', 'condreg': 'COND_REG', 'call': 'CALL', 'jumpind': 'JUMP_IND',
         'callind': 'CALL_IND', 'return': 'RETURN', 'syscall': 'SYSCALL', 'trap': 'TRAP', 'far': 'FAR'}
BITS = {'system': 0, 'priv': 'ISA_BIT_PRIV', 'barrier': 'ISA_BIT_SERIALIZES', 'pred': 'ISA_BIT_PREDICATED',
        'atomic': 'ISA_BIT_LOCK', 'exload': 'ISA_BIT_EXCLUSIVE_LOAD', 'exstore': 'ISA_BIT_EXCLUSIVE_STORE',
        'monitor': 'ISA_BIT_EXCLUSIVE_STORE'}
FLAGS = {'nzcv': 15, 'nzv': 13, 'c': 2, 'some': 15}
MEMORY = {  # form: the bits it holds, the base register apart
    'b': 0, 't': 0, 'u12': 0xfff << 10, 's9': 0x1ff << 12, 's9post': 0x1ff << 12, 's9pre': 0x1ff << 12,
    'r': 0x1f << 16 | 0xf << 12, 'p7': 0x7f << 15, 'p7post': 0x7f << 15, 'p7pre': 0x7f << 15,
    'p7g': 0x7f << 15, 'p7gpost': 0x7f << 15, 'p7gpre': 0x7f << 15, 'g9': 0x1ff << 12, 'g9post': 0x1ff << 12,
    'g9pre': 0x1ff << 12, 'lit': 0x7ffff << 5, 'adr': 0x7ffff << 5 | 3 << 29, 'pac': 0x1ff << 12 | 1 << 22,
    'pacpre': 0x1ff << 12 | 1 << 22, 'vpost': 0x1f << 16}
SPECIAL = {  # kind, the bits it holds
    '#a12': ('IMM_ADD', 0xfff << 10), '#bm': ('IMM_MASK', 0x1fff << 10), '#w16': ('IMM_WIDE', 0xffff << 5 | 3 << 21),
    '#bit': ('IMM_BIT', 0x1f << 19 | 1 << 31), '#fp8': ('IMM_FLOAT', 0xff << 13), '#vi': ('IMM_VECTOR', 7 << 16 | 0x1f << 5),
    '#0': ('IMM_ZERO', 0), 'cn': ('CRN', 15 << 12), 'cm': ('CRM', 15 << 8), 'sysreg': ('SYSREG', 0x7fff << 5)}


class Row:
    def __init__(self, line, where):
        words = line.split()
        self.where, self.bits, self.name, ops = where, words[0], words[1], words[2]
        if len(self.bits) != 32:
            fail(where, 'not 32 bits')
        self.mask = int(''.join('1' if c in '01' else '0' for c in self.bits), 2)
        self.value = int(''.join('1' if c == '1' else '0' for c in self.bits), 2)
        self.mnemonic = self.name.split('.')[0]
        self.sf = 31 - self.bits.index('f') if 'f' in self.bits else 31
        self.held, self.vector, self.memory, self.adr = 0, False, False, False
        self.slots = [] if ops == '-' else [self.slot(o) for o in ops.split(',')]
        self.flow, self.isa_bits, self.rejects = 'NEXT', [], []
        self.read = self.written = self.fixed_read = self.fixed_written = 0
        self.other_read, self.other_written, self.kills, self.cond = [], [], True, False
        for a in words[3:]:
            self.attribute(a)
        self.free = ~self.mask & ~self.held & 0xffffffff

    def slot(self, text):
        access = {'=': 'ISA_WRITE', '&': 'ISA_READ_WRITE'}.get(text[0])
        t = text[1:] if access else text
        if t in SPECIAL:
            self.held |= SPECIAL[t][1]
            return dict(kind=SPECIAL[t][0])
        if t.startswith('cond'):
            self.held |= 15 << int(t[4:])
            return dict(kind='COND', at=int(t[4:]))
        m = re.fullmatch(r'#(s?)(\d+)\.(\d+)(?:\*(\d+))?', t)
        if m:
            at, width = int(m[2]), int(m[3])
            self.held |= (1 << width) - 1 << at
            return dict(kind='IMM_SIGNED' if m[1] else 'IMM', at=at, width=width, scale=int(m[4] or 1))
        if t[0] == '@':
            self.held |= (1 << int(t[1:])) - 1 << (0 if t == '@26' else 5)
            return dict(kind='TARGET', at=0 if t == '@26' else 5, width=int(t[1:]))
        if t.startswith('m.'):
            return self.mem(t.split('.'))
        return self.register(t, access)

    def mem(self, parts):
        form = parts[1]
        self.held |= MEMORY[form] | (0 if form in ('lit', 'adr') else 0x1f if form == 't' else 0x1f << 5)
        if form == 'adr':
            self.adr = True
            return dict(kind='MEM', form='ADR', access='ISA_ADDRESS_ONLY')
        self.memory = True
        m = re.fullmatch(r'(\d*)(f2|f|v|z|\?|)(rw|r|w|p)', parts[2])
        rule = {'f': 'F', 'f2': 'F', 'v': 'Q', 'z': 'Z10', '': 'NUMBER', '?': 'UNKNOWN'}[m[2]]
        size = int(m[1] or 1) * (2 if m[2] == 'f2' else 1)
        access = {'r': 'ISA_READ', 'w': 'ISA_WRITE', 'rw': 'ISA_READ_WRITE', 'p': 'ISA_PREFETCH'}[m[3]]
        return dict(kind='MEM', form=form.upper(), access=access, size=size if m[2] != '?' else 0, rule=rule)

    def register(self, t, access):
        m = re.fullmatch(r'([RWXBHSDQFTUILJVE])(d|n|m|s|a|t2|t)(\+|/s|/e|4|\*\d)?', t)
        if not m:
            fail(self.where, 'what is ' + t)
        letter, field, more = m[1], m[2], m[3] or ''
        s = dict(at=FIELDS[field], access=access or ('ISA_WRITE' if field == 'd' else 'ISA_READ'), width=5)
        if more == '4':
            s['width'] = 4
        self.held |= (1 << s['width']) - 1 << s['at']
        s['count'] = int(more[1:]) if more.startswith('*') else 1
        if letter in 'RWX':
            s.update(kind={'+': 'REG_SP', '/s': 'REG_SHIFTED', '/e': 'REG_EXTENDED'}.get(more, 'REG'))
            s.update({'W': dict(size=4), 'X': dict(size=8), 'R': dict(size=1, rule='F')}[letter])
            self.held |= {'/s': 3 << 22 | 0x3f << 10, '/e': 0x3f << 10}.get(more, 0)
        else:
            self.vector = True
            s.update(kind='VEC_ELEMENT' if letter == 'E' or more == '4' else 'VEC')
            s.update({'F': dict(size=1, rule='FTYPE'), 'V': dict(size=1, rule='Q'), 'T': dict(size=1, rule='Z22'),
                      'U': dict(size=4, rule='BIT22'), 'L': dict(size=2, rule='Z22'),
                      'I': dict(size=1, rule='IMMH'), 'J': dict(size=2, rule='IMMH'),
                      'E': dict(size=16)}.get(letter) or dict(size=VECTORS[letter]))
        return s

    def attribute(self, a):
        if a in FLOWS:
            self.flow = FLOWS[a]
        elif a == 'fpsr':
            self.other_read.append('ISA_OTHER_FP_STATUS')
            self.other_written.append('ISA_OTHER_FP_STATUS')
        elif a in BITS:
            if BITS[a]:
                self.isa_bits.append(BITS[a])
            if a == 'system':
                self.other_read.append('ISA_OTHER_SYSTEM')
                self.other_written.append('ISA_OTHER_SYSTEM')
        elif a[0] == '!':
            letters, values = a[1:].split('=')
            at = [31 - self.bits.index(c) for c in letters]
            self.rejects.append((sum(1 << b for b in at), sum(1 << b for b, v in zip(at, values) if v == '1')))
        else:
            how, what = a.split(':')
            for h in how:
                self.effect(h == 'w', what)

    def effect(self, writes, what):
        if what == 'cond':
            self.cond = True
        elif what in FLAGS:
            if writes:
                self.written |= FLAGS[what]
                self.kills &= what != 'some'
            else:
                self.read |= FLAGS[what]
        elif what in ('tls', 'fpsr'):
            (self.other_written if writes else self.other_read).append(
                'ISA_OTHER_TLS_BASE' if what == 'tls' else 'ISA_OTHER_FP_STATUS')
        else:
            number = 31 if what == 'sp' else int(what[1:])
            if writes:
                self.fixed_written |= 1 << number
            else:
                self.fixed_read |= 1 << number

    def all_bits(self):
        bits = list(self.isa_bits)
        if self.vector:
            bits.append('ISA_BIT_FP')
        if self.memory:
            bits.append('ISA_BIT_MEM')
        if any(s.get('form') in ('LIT', 'ADR') for s in self.slots):
            bits.append('ISA_BIT_PCREL_MEM')
        return ' | '.join(sorted(set(bits))) or '0'


def fail(where, text):
    sys.exit('%s: %s' % (where, text))


def read_rows(names):
    rows = []
    for name in names:
        with open(name) as f:
            for number, line in enumerate(f, 1):
                if line.strip() and line[0] != '#':
                    rows.append(Row(line, '%s:%d' % (name, number)))
    seen = {}
    for r in rows:
        if r.name in seen:
            fail(r.where, '%s is there already: %s' % (r.name, seen[r.name]))
        seen[r.name] = r.where
    return rows


def check_overlaps(rows):
    for i, a in enumerate(rows):
        for b in rows[i + 1:]:
            if (a.value ^ b.value) & a.mask & b.mask:
                continue
            nested = a.mask != b.mask and (a.mask & b.mask) in (a.mask, b.mask)
            apart = any((m & b.mask) == m and (b.value & m) == v for m, v in a.rejects)
            apart = apart or any((m & a.mask) == m and (a.value & m) == v for m, v in b.rejects)
            if not nested and not apart:
                fail(b.where, '%s overlaps %s' % (b.name, a.name))


def key_of(word):
    return (word >> 21 & 0x1ff) << 2 | (word >> 10 & 3)


def buckets(rows):
    """For each key the rows it may be, the most specific first."""
    key_mask = 0x1ff << 21 | 3 << 10
    lists = [[] for _ in range(2048)]
    order = sorted(range(len(rows)), key=lambda i: (-bin(rows[i].mask).count('1'), i))
    for i in order:
        fixed, value = rows[i].mask & key_mask, rows[i].value & key_mask
        for k in range(2048):
            word = (k >> 2) << 21 | (k & 3) << 10
            if word & fixed == value:
                lists[k].append(i + 1)
    return lists


def c_slot(s):
    kind = s['kind']
    if kind == 'MEM':
        return '{A64_SLOT_MEM, %s, A64_MEM_%s, 0, %d, A64_RULE_%s, 1}' % (s['access'], s['form'], s.get('size', 0),
                                                                      s.get('rule', 'NUMBER'))
    return '{A64_SLOT_%s, %s, %d, %d, %d, A64_RULE_%s, %d}' % (
        kind, s.get('access', 'ISA_READ'), s.get('at', 0), s.get('width', 0), s.get('size', 0), s.get('rule', 'NUMBER'),
        s.get('scale', s.get('count', 1)))


def label(name):
    return 'A64_' + re.sub(r'\W', '_', name).upper()


def write_header(f, rows):
    f.write('/* Generated by tables.py. */\nenum a64_row_number {\n    A64_ROW_UNKNOWN,\n')
    for r in rows:
        f.write('    %s,\n' % label(r.name))
    f.write('    A64_ROW_COUNT\n};\nenum { A64_OP_COUNT = %d };\n' % (len({r.mnemonic for r in rows}) + 1))


def write_source(f, rows):
    mnemonics = {}
    slots, slot_at = [], {}
    out = []
    for r in rows:
        op = mnemonics.setdefault(r.mnemonic, len(mnemonics) + 1)
        text = [c_slot(s) for s in r.slots]
        at = slot_at.setdefault(tuple(text), len(slots))
        if at == len(slots):
            slots += text
        reject = (r.rejects + [(0, 1)] * 2)[:2]
        out.append('    {0x%08x, 0x%08x, {{0x%x, 0x%x}, {0x%x, 0x%x}}, 0x%x, 0x%x, 0x%x, %d, %d, %d, ISA_FLOW_%s, '
                   '%s, %d, %d, %d, %s, %s, %d, %d}, /* %s */\n' % (
                       r.mask, r.value, *reject[0], *reject[1], r.free, r.fixed_read, r.fixed_written, op, at,
                       len(text), r.flow, r.all_bits(), r.read, r.written, r.written if r.kills else 0,
                       ' | '.join(r.other_read) or '0', ' | '.join(r.other_written) or '0', r.cond, r.sf, r.name))
        if len(r.rejects) > 2:
            fail(r.where, 'more than two exceptions')
    f.write('/* Generated by tables.py. */\n#include "isa/aarch64/tables.h"\n\n')
    f.write('const a64_row a64_rows[] = {\n    {.reject = {{0, 1}, {0, 1}}, .bits = ISA_BIT_UNKNOWN},\n')
    f.writelines(out)
    f.write('};\n\nconst a64_slot a64_slots[] = {\n')
    f.writelines('    %s,\n' % s for s in slots)
    f.write('};\n\nconst char *const a64_mnemonics[] = {"unknown",\n')
    f.writelines('    "%s",\n' % m for m in mnemonics)
    f.write('};\n\n')
    members, starts, at = [], [], {}
    for b in buckets(rows):
        b = tuple(b + [0])
        if b not in at:
            at[b] = len(members)
            members += b
        starts.append(at[b])
    f.write('const uint16_t a64_bucket_rows[] = {%s};\n' % ', '.join(map(str, members)))
    f.write('const uint16_t a64_buckets[2048] = {%s};\n' % ', '.join(map(str, starts)))


def main():
    rows = read_rows(sys.argv[3:])
    check_overlaps(rows)
    with open(sys.argv[1], 'w') as f:
        write_source(f, rows)
    with open(sys.argv[2], 'w') as f:
        write_header(f, rows)


main()

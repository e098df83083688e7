"""Turns the linked boot code into a C header: its bytes and the offsets of its entries."""
import struct
import sys


def sections(elf):
    off, = struct.unpack_from('<Q', elf, 0x28)
    size, count, names = struct.unpack_from('<HHH', elf, 0x3A)
    heads = [struct.unpack_from('<IIQQQQIIQQ', elf, off + i * size) for i in range(count)]
    strings = heads[names]
    for h in heads:
        end = elf.index(b'\0', strings[4] + h[0])
        yield elf[strings[4] + h[0]:end].decode(), h


def symbols(elf, heads, table):
    strings = heads[table[6]]
    for at in range(table[4], table[4] + table[5], 24):
        name, _info, _other, _shndx, value, _size = struct.unpack_from('<IBBHQQ', elf, at)
        begin = strings[4] + name
        yield elf[begin:elf.index(b'\0', begin)].decode(), value


def main():
    elf = open(sys.argv[1], 'rb').read()
    named = dict(sections(elf))
    heads = [h for _, h in sections(elf)]
    blob = named['.blob']
    code = elf[blob[4]:blob[4] + blob[5]]
    places = dict(symbols(elf, heads, named['.symtab']))
    if any(h[1] in (4, 9) and h[5] for h in heads):
        sys.exit('the boot code needs relocation')
    if places['boot_links'] != 0 or blob[3] != 0:
        sys.exit('the boot code does not begin with its links')
    with open(sys.argv[2], 'w') as out:
        out.write('/* Generated from src/elf/boot. */\n')
        for name in ('boot_init', 'boot_entry'):
            out.write('enum { %s_AT = %d };\n' % (name.upper(), places[name]))
        begin, end = (places.get(name, 0) for name in ('boot_return', 'boot_return_end'))
        out.write('enum { BOOT_RETURN_AT = %d, BOOT_RETURN_SIZE = %d };\n' % (begin, end - begin))
        out.write('static const _Alignas(16) unsigned char boot_code[] = {')
        for i, byte in enumerate(code):
            out.write(('\n    ' if i % 16 == 0 else ' ') + '%d,' % byte)
        out.write('\n};\n')


main()

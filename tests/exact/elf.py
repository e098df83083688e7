"""Just enough of ELF for the exactness test: load addresses and function symbols of 64-bit files."""

import struct

PT_LOAD, SHT_SYMTAB, SHT_DYNSYM, STT_OBJECT, STT_FUNC, STT_GNU_IFUNC = 1, 2, 11, 1, 2, 10


class Elf:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        (self.type, _, _, self.entry, phoff, shoff, _, _, phsize, phnum, shsize, shnum, _) = \
            struct.unpack_from("<HHIQQQIHHHHHH", self.data, 16)
        self.loads = []
        for i in range(phnum):
            kind, flags, offset, vaddr, _, filesz, memsz, _ = struct.unpack_from(
                "<IIQQQQQQ", self.data, phoff + i * phsize)
            if kind == PT_LOAD:
                self.loads.append((offset, vaddr, filesz))
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, shoff + i * shsize)
                         for i in range(shnum)]

    def vaddr_of_offset(self, offset):
        for start, vaddr, size in self.loads:
            if start - start % 4096 <= offset < start + size:
                return vaddr + offset - start
        return None

    def functions(self):
        """{(address, size): [names]} of sized function symbols."""
        return self.symbols((STT_FUNC, STT_GNU_IFUNC))

    def objects(self):
        """The same of variables."""
        return self.symbols((STT_OBJECT,))

    def symbols(self, kinds):
        found = {}
        for section in self.sections:
            if section[1] not in (SHT_SYMTAB, SHT_DYNSYM):
                continue
            strings = self.sections[section[6]]
            for at in range(section[4], section[4] + section[5], 24):
                name, info, _, index, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
                if info & 15 not in kinds or index == 0 or size == 0:
                    continue
                start = strings[4] + name
                text = self.data[start:self.data.index(b"\0", start)].decode()
                names = found.setdefault((value, size), [])
                if text not in names:
                    names.append(text)
        return found

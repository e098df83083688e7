"""Turns a page into a C header: the text before and behind the mark where its data goes, as bytes."""
import sys


def main():
    with open(sys.argv[1], encoding='utf-8') as page, open(sys.argv[2], 'w', encoding='utf-8') as out:
        parts = page.read().split('INLAY-DATA')
        if len(parts) != 2:
            sys.exit('the page has no place for its data, or more than one')
        out.write('/* Generated from src/trace/page.html. */\n')
        for name, part in zip(('page_before', 'page_behind'), parts):
            data = part.encode()
            out.write(f'static const char {name}[{len(data)}] = {{\n')
            for at in range(0, len(data), 24):
                out.write(','.join(map(str, data[at:at + 24])) + ',\n')
            out.write('};\n')


if __name__ == '__main__':
    main()

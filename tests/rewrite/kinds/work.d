// D: exceptions, closures, the collector, associative arrays.
import std.stdio, std.algorithm, std.conv;
class Node { Node next; int v; this(int x, Node n) { v = x; next = n; } }
int deep(int n) { scope (exit) n++; if (n == 0) throw new Exception("deep"); return deep(n - 1) + 1; }
void main()
{
    int caught;
    foreach (i; 0 .. 20) { try { deep(i); } catch (Exception e) { caught += cast(int) e.msg.length; } }
    Node list;
    foreach (i; 0 .. 20000) { list = new Node(i, i % 100 ? list : null); }
    int[string] words;
    foreach (i; 0 .. 100) words["w" ~ to!string(i % 13)] += i;
    auto keys = words.keys.sort;
    foreach (k; keys) write(k, " ", words[k], " ");
    writeln(caught, " ", list.v);
    auto f = (int x) => x * caught;
    writeln([1, 2, 3].map!f.sum);
}

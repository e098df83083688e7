// What Go passes and returns in its registers: values taken apart, several results, what finds no register.
// languages.py says what each call is called with.
package main

import (
	"errors"
	"fmt"
	"os"
)

type point struct{ x, y int }
type odd struct {
	a int8
	f float32
	s string
	b bool
}

//go:noinline
func add(a, b int) int { return a + b }

//go:noinline
func greet(name string, n int) string { return fmt.Sprintf("%s-%d", name, n) }

//go:noinline
func sum(v []int, scale float64) (total int, real float64, err error) {
	for _, x := range v {
		total += x
	}
	if len(v) == 0 {
		err = errors.New("nothing")
	}
	return total, float64(total) * scale, err
}

//go:noinline
func (p point) norm(f float64) float64 { return float64(p.x*p.x+p.y*p.y) * f }

//go:noinline
func (p *point) move(by [1]int) { p.x += by[0] }

//go:noinline
func many(a int8, b, c, d, e, f, g, h, i, j int, k int16, r float32) (int, bool) {
	return int(a) + b + c + d + e + f + g + h + i + j + int(k) + int(r), k > 3
}

//go:noinline
func late(a, b, c, d, e, f, g, h int, p point, i int) int { return a + b + c + d + e + f + g + h + p.x*p.y + i }

//go:noinline
func strange(o odd, u uint8) odd { return odd{o.a + int8(u), o.f * 2, o.s + "!", !o.b} }

//go:noinline
func large(v [3]int32, n int) [3]int32 { return [3]int32{v[2], v[1], int32(n)} }

//go:noinline
func turns(c complex128, unused string, n uint16) complex128 { return c * complex(float64(n), 0) }

type chosen struct {
	f func(int) int
	n int
}

//go:noinline
func applied(c chosen, f func(int) int, n int) func(int) int {
	if f(n) > c.f(c.n) {
		return f
	}
	return nil
}

//go:noinline
func deep(n int) int {
	if n == 0 {
		return 7
	}
	return deep(n-1) + 1
}

func main() {
	fmt.Println(add(3, 4), greet("bob", 9))
	fmt.Println(sum([]int{1, 2, 3}, 0.5))
	_, _, err := sum(nil, 2)
	p := point{3, 4}
	p.move([1]int{-1})
	fmt.Println(err, p.norm(2.5))
	fmt.Println(many(-1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12.5))
	fmt.Println(late(1, 2, 3, 4, 5, 6, 7, 8, point{9, 10}, 11))
	fmt.Println(strange(odd{1, 0.75, "text", true}, 2), large([3]int32{1, 2, 3}, 4), turns(1+2i, "u", 3))
	more := func(n int) int { return n + p.x }
	fmt.Println(applied(chosen{more, 3}, more, 4) != nil)
	done := make(chan int)
	go func() { done <- deep(5) }()
	fmt.Println(<-done)
	os.Exit(3)
}

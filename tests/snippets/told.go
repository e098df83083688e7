// What told.c is in C, on stacks that are copied.
package main

import "fmt"

var opaque int64

//go:noinline
func seen(v int64) { opaque += v }

type point struct{ x, y int32 }

//go:noinline
func changed(n int32, m int64, small uint8, factor float64, p point) int64 {
	sum := int64(n) + m
	n = n*3 + p.x
	seen(int64(n))
	small += 9
	half := factor / 2
	seen(int64(small) + int64(half))
	return sum + int64(n) + int64(p.y) + int64(half)
}

//go:noinline
func listed(list []int64, start int64) int64 {
	total := start
	for i, each := range list {
		twice := each * 2
		total += twice + int64(i)
		seen(total)
	}
	return total
}

//go:noinline
func deep(n int64, pad [40]int64) int64 {
	mine := n*2 + pad[3]
	if n > 0 {
		mine += deep(n-1, pad)
	}
	seen(mine)
	return mine
}

func main() {
	sum := int64(0)
	for turn := int64(0); turn < 3; turn++ {
		sum += changed(int32(turn)+5, turn*1000, 250, float64(turn)/4, point{int32(turn), 4})
		sum += listed([]int64{3, 50, 700, turn}, turn+1)
		var pad [40]int64
		pad[3] = turn
		sum += deep(6, pad)
	}
	fmt.Println(sum, opaque)
}

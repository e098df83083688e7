// Go: goroutines, some of which are interrupted all the time, channels, panics that are recovered, deferred calls, maps, the collector.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
)

func deep(n int) int {
	if n == 0 {
		panic("deep")
	}
	return deep(n-1) + 1
}
func try(n int) (s string) {
	defer func() { s = fmt.Sprint(recover()) }()
	deep(n)
	return
}

// Neither calls anything nor looks at its stack: it is interrupted wherever it is.
func turns(n int) (x uint64) {
	for i := 0; i < n; i++ {
		x = x*6364136223846793005 + uint64(i)
		if x%3 == 0 {
			x += 7
		}
	}
	return
}

//go:noinline
func nothing() {}
func within()  { nothing() }

// Between its calls stands what is too short for a jump: where something is written in line, it begins with a nop.
func closely(times int) uint64 {
	for i := 0; i < times; i++ {
		nothing()
		within()
		nothing()
		within()
		within()
	}
	return uint64(times)
}

// Frames as large as these are made room for in another way. The first one's is enough for the second.
//
//go:noinline
func large(n int) int {
	var room [1024]int
	room[n%1024] = int(turns(n % 3))
	return room[n*7%1024] + len(room)
}
func larger() (sum int) {
	var room [4096]int
	for i := range room {
		room[i] = large(i)
	}
	for _, x := range room {
		sum += x
	}
	return
}

// Its stack grows under it, and it begins anew then: how often it is entered is not always the same.
func depth(n int) int {
	var room [64]int
	for i := range room {
		room[i] = i * n
	}
	if n == 0 {
		return room[5]
	}
	return depth(n-1) + room[n%64]
}
func interrupted() (sum uint64) {
	var group sync.WaitGroup
	var done [4]uint64
	for i := range done {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			for k := 0; k < 10; k++ {
				done[i] += turns(400000) + uint64(depth(30*i)) + closely(20000)
			}
		}(i)
	}
	for i := 0; i < 50; i++ {
		runtime.GC()
	}
	group.Wait()
	for _, d := range done {
		sum += d
	}
	return
}
func main() {
	fmt.Println(larger(), interrupted())
	caught := 0
	for i := 0; i < 20; i++ {
		caught += len(try(i))
	}
	var group sync.WaitGroup
	results := make(chan int, 100)
	for i := 0; i < 20; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			s := strings.Repeat("x", i)
			for k := 0; k < 100; k++ {
				s = strings.ToUpper(s[:len(s)/2]) + s[len(s)/2:]
			}
			results <- len(s)
		}(i)
	}
	group.Wait()
	close(results)
	sum := 0
	for r := range results {
		sum += r
	}
	runtime.GC()
	words := map[string]int{}
	for _, w := range strings.Fields("the cat sat on the mat") {
		words[w]++
	}
	keys := []string{}
	for k := range words {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	fmt.Println(caught, sum, keys)
	os.Exit(3)
}

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
				done[i] += turns(400000) + uint64(depth(30*i))
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
	fmt.Println(interrupted())
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

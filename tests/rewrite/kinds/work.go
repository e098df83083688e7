// Go: goroutines, channels, panics that are recovered, deferred calls, maps, the collector.
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
func main() {
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

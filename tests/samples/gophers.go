// What Go's run time does by itself: goroutines on several threads, channels, garbage, maps, defer and panic, a stack
// that grows, signals that preempt.
package main

import (
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
)

type node struct {
	left, right *node
	value       int
}

func build(depth int) *node {
	if depth == 0 {
		return &node{value: 1}
	}
	return &node{build(depth - 1), build(depth - 1), depth}
}

func (n *node) sum() int {
	if n == nil {
		return 0
	}
	return n.value + n.left.sum() + n.right.sum()
}

func deep(n int) int {
	var room [64]int
	room[n%64] = n
	if n == 0 {
		return 0
	}
	return deep(n-1) + room[n%64] - n + 1
}

func recovered(i int) (text string) {
	defer func() { text = "recovered: " + recover().(error).Error() }()
	var none []int
	return strconv.Itoa(none[i])
}

func noPointer() (text string) {
	defer func() { text = "recovered: " + recover().(error).Error() }()
	var n *node
	return strconv.Itoa(n.value)
}

// The call that panics is its last one: where it goes on then lies a byte behind that.
//
//go:noinline
func panics(n int) (sum int) {
	defer func() {
		if r := recover(); r != nil {
			sum = r.(int)
		}
	}()
	if n%7 == 3 {
		panic(n * 3)
	}
	for i := 0; i < n; i++ {
		sum += i
	}
	return
}

func workers() int {
	jobs, results := make(chan int), make(chan int)
	var group sync.WaitGroup
	for i := 0; i < 6; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := range jobs {
				results <- n * n % 1009
			}
		}()
	}
	go func() {
		for i := 0; i < 2000; i++ {
			jobs <- i
		}
		close(jobs)
		group.Wait()
		close(results)
	}()
	sum := 0
	for r := range results {
		sum += r
	}
	return sum
}

func main() {
	trees := 0
	for i := 0; i < 20; i++ {
		trees += build(10).sum()
		runtime.GC()
	}
	words := map[string]int{}
	for i := 0; i < 5000; i++ {
		words["w"+strconv.Itoa(i*7919%401)] += i
	}
	keys := make([]string, 0, len(words))
	for k := range words {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	spin := make(chan int)
	go func() {
		n := 0
		for i := 0; i < 30000000; i++ {
			n += i & 3
		}
		spin <- n
	}()
	os.Stdout.WriteString("trees " + strconv.Itoa(trees) + " workers " + strconv.Itoa(workers()) + "\n")
	os.Stdout.WriteString(keys[0] + " " + strconv.Itoa(words[keys[0]]) + " deep " + strconv.Itoa(deep(20000)) + "\n")
	sum := 0
	for i := 0; i < 100; i++ {
		sum += panics(i)
	}
	os.Stdout.WriteString("panics " + strconv.Itoa(sum) + "\n")
	os.Stdout.WriteString(recovered(3) + "; " + noPointer() + "; spun " + strconv.Itoa(<-spin) + "\n")
	os.Exit(7)
}

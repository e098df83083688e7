// Go that calls C, which calls back, while goroutines are interrupted; then it executes a program.
package main

/*
#include <stdlib.h>
extern int order(void *, void *);
static int compare(const void *a, const void *b) { return order((void *)a, (void *)b); }
static void sorted(int *p, int n) { qsort(p, n, sizeof *p, compare); }
*/
import "C"
import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

//export order
func order(a, b unsafe.Pointer) C.int { return *(*C.int)(a) - *(*C.int)(b) }

func turns(n int) (x uint64) {
	for i := 0; i < n; i++ {
		x = x*6364136223846793005 + uint64(i)
	}
	return
}

// A program that is executed resets the dispositions of its parent's memory, not the parent's own.
func executed() os.Signal {
	usual := make(chan os.Signal, 1)
	signal.Notify(usual, syscall.SIGUSR1)
	out, err := exec.Command("/bin/sh", "-c", "echo here; exit 3").Output()
	fmt.Println(string(out), err)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	return <-usual
}
func main() {
	var group sync.WaitGroup
	var sums [4]uint64
	for i := range sums {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			numbers := make([]C.int, 200)
			for k := range numbers {
				numbers[k] = C.int(k * 7919 % 1009)
			}
			C.sorted(&numbers[0], C.int(len(numbers)))
			sums[i] = turns(2000000) + uint64(numbers[100])
		}(i)
	}
	for i := 0; i < 30; i++ {
		runtime.GC()
	}
	group.Wait()
	fmt.Println(sums, executed())
}

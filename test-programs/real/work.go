// Goroutines on small growing stacks, a fault turned into a panic, signals, timers, a child, preemption by signals.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

type node struct{ left, right *node }

func tree(d int) *node {
	if d == 0 {
		return &node{}
	}
	return &node{tree(d - 1), tree(d - 1)}
}

func (n *node) count() int {
	if n.left == nil {
		return 1
	}
	return 1 + n.left.count() + n.right.count()
}

func fault(p *int) (r string) {
	defer func() { r = fmt.Sprint(recover()) }()
	return fmt.Sprint(*p)
}

func deep(n int) int {
	var room [100]int
	room[n%100] = n
	if n == 0 {
		return 0
	}
	return deep(n-1) + room[n%100] - n + 1
}

func main() {
	runtime.GOMAXPROCS(2)
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for i := 0; i < 200; i++ {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			c := tree(i%10).count() + deep(1000)
			mu.Lock()
			total += c
			mu.Unlock()
		}(i)
	}
	wg.Wait()
	fmt.Println(total, fault(nil))
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGUSR1)
	syscall.Kill(syscall.Getpid(), syscall.SIGUSR1)
	fmt.Println(<-ch)
	<-time.After(time.Millisecond)
	out, err := exec.Command("echo", "child").Output()
	fmt.Print(string(out), err, "\n")
	go func() {
		for {
		}
	}()
	runtime.GC()
	fmt.Println("done")
}

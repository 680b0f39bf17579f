package etcdtest

import (
	"os/exec"
	"runtime"
)

// keeper starts processes from one operating system thread that lives as long as the keeper. Linux
// kills a child with Pdeathsig when the thread that started it ends, and Go ends threads at any time.
type keeper struct {
	jobs chan func()
	done chan struct{}
}

func newKeeper() *keeper {
	k := &keeper{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(k.done)
		// The thread is never unlocked, so it ends with the goroutine.
		runtime.LockOSThread()
		for job := range k.jobs {
			job()
		}
	}()
	return k
}

func (k *keeper) start(cmd *exec.Cmd) error {
	err := make(chan error)
	k.jobs <- func() { err <- cmd.Start() }
	return <-err
}

func (k *keeper) end() {
	close(k.jobs)
	<-k.done
}

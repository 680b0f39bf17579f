package rack

import (
	"fmt"
	"sync"
	"time"
)

// load makes units change the settings of their relations all the time.
type load struct {
	stop    chan struct{}
	running sync.WaitGroup
	changes int
	refused int
}

// drive starts a load.
func (w *world) drive() *load {
	l := &load{stop: make(chan struct{})}
	l.running.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-l.stop:
				return
			case <-tick.C:
			}
			service := services[n%len(services)]
			_, err := w.hosts[0].Shell(fmt.Sprintf("timeout 60 juju set %s set=turn=%d", service, n))
			if l.changes++; err != nil {
				l.refused++
			}
		}
	})
	return l
}

// halt ends the load.
func (l *load) halt(during string) {
	close(l.stop)
	l.running.Wait()
	fmt.Printf("rack: %s: %d changes of configuration, %d refused\n", during, l.changes, l.refused)
}

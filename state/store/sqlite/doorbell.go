package sqlite

import (
	"os"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// doorbell is a file that the writer touches after its commit, and that other processes
// watch. Watching the WAL instead would wake them before the commit is visible.
//
// It saves time and promises nothing: if it cannot be made, rung or watched (there
// are only so many inotify instances), polling finds every commit.
type doorbell struct {
	path string

	mu         sync.Mutex
	file       *os.File
	watcher    *fsnotify.Watcher
	forwarding sync.WaitGroup
}

func newDoorbell(storePath string) *doorbell { return &doorbell{path: storePath + "-bell"} }

// ring writes to the bell's file, which wakes other processes that have the store open.
func (b *doorbell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.file == nil {
		f, err := os.OpenFile(b.path, os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return
		}
		b.file = f
	}
	b.file.WriteAt([]byte{'.'}, 0)
}

// listen calls heard, on a goroutine of its own, after every process's rings, and touched when one of
// the other files was removed or written.
func (b *doorbell) listen(heard, touched func(), others ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.watcher != nil {
		return
	}
	w, err := b.watchFile()
	if err != nil {
		return
	}

	for _, path := range others {
		_ = w.Add(path) // or the next poll looks
	}
	touched() // so that it is known how the files were
	b.watcher = w
	b.forwarding.Go(func() { forwardEvents(w, b.path, heard, touched) })
}

// watchFile watches the file alone, since in the folder every commit touches the WAL.
func (b *doorbell) watchFile() (*fsnotify.Watcher, error) {
	f, err := os.OpenFile(b.path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}

	f.Close()
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := w.Add(b.path); err != nil {
		w.Close()
		return nil, err
	}

	return w, nil
}

// forwardEvents calls heard for events of the bell's file, and touched for all others.
func forwardEvents(w *fsnotify.Watcher, bell string, heard, touched func()) {
	for {
		select {
		case event, ok := <-w.Events:
			if !ok {
				return
			}

			if event.Name == bell {
				heard()
			} else {
				touched()
			}

		case _, ok := <-w.Errors: // events may be lost
			if !ok {
				return
			}
			heard()
		}
	}
}

// close ends the watch of the bell's file.
func (b *doorbell) close() {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.watcher != nil {
		b.watcher.Close()
	}
	b.forwarding.Wait()
	if b.file != nil {
		b.file.Close()
	}
}

package sqlite

import (
	"os"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// doorbell is a file that a process writes after each commit, and that other processes watch. If they watched
// the WAL instead, they would wake before the commit is visible.
//
// The doorbell only saves time. If its file cannot be created, written or watched (for example because there are
// too many inotify instances), polling still finds every commit.
type doorbell struct {
	path string

	mu         sync.Mutex
	file       *os.File
	watcher    *fsnotify.Watcher
	forwarding sync.WaitGroup
}

func newDoorbell(storePath string) *doorbell { return &doorbell{path: storePath + "-bell"} }

// ring writes to the bell's file, which wakes other processes that have the store open. If it fails, they
// notice the commit at their next poll.
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

// listen starts a goroutine that calls the function heard after a ring from any process, and the function
// touched after one of the files in others was written or removed. listen also calls touched once itself. If
// the bell is already watched, it does nothing. If the bell cannot be watched, it does nothing, and the next
// call tries again.
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
		// If this fails, polling finds the changes.
		_ = w.Add(path)
	}
	// A file may have changed before the watch began.
	touched()
	b.watcher = w
	b.forwarding.Go(func() { forwardEvents(w, b.path, heard, touched) })
}

// watchFile returns a watcher of the bell's file, which it creates if necessary. It does not watch the
// directory, since every commit also writes the WAL there.
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

// forwardEvents calls the function heard for events of the bell's file and for errors of the watcher, and the
// function touched for events of other files. It returns when the watcher is closed.
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

		case _, ok := <-w.Errors:
			if !ok {
				return
			}
			// Events may be lost, and a ring may be one of them.
			heard()
		}
	}
}

// close ends the watch and the goroutine that listen has started, and closes the bell's file.
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

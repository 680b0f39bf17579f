package dummy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"bijou/provision/provider"
)

// JournalFile is in the provider's folder. It only grows: a line for each thing
// that was done, which all processes of the provider read on.
const JournalFile = "journal"

// The events of the journal.
const (
	made    = "made"    // an instance, for its token
	again   = "again"   // it had ended, and runs again
	ended   = "ended"   // it does not run any more
	stopped = "stopped" // nothing is left of it
	crash   = "crash"   // the process dies
)

// event is one line of the journal.
type event struct {
	What     string            `json:"what"`
	Token    string            `json:"token,omitempty"`
	Instance provider.Instance `json:"instance"`
}

// known is what a process has read of the journal.
type known struct {
	offset    int64
	instances map[string]provider.Instance // by id
	tokens    map[string]string            // ids
	starts    map[string]int               // instances made, by token
	crashes   map[string]int               // by machine
}

func newKnown() known {
	return known{
		instances: map[string]provider.Instance{}, tokens: map[string]string{},
		starts: map[string]int{}, crashes: map[string]int{},
	}
}

// take takes up one event.
func (k *known) take(e event) {
	id := e.Instance.ID
	switch e.What {
	case made:
		k.starts[e.Token]++
		k.tokens[e.Token] = id
		fallthrough
	case again, ended:
		k.instances[id] = e.Instance
	case stopped:
		delete(k.instances, id)
	case crash:
		k.crashes[e.Instance.Machine]++
	}
}

// do calls f with all that any process has done, and adds to the journal what f
// does. No other process does anything meanwhile.
func (p *Provider) do(f func(k *known) []event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	file, err := os.OpenFile(filepath.Join(p.dir, JournalFile), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer file.Close() // which frees the lock
	if err := lock(file); err != nil {
		return fmt.Errorf("cannot lock the dummy's journal: %w", err)
	}
	if err := p.known.readOn(file); err != nil {
		return fmt.Errorf("cannot read the dummy's journal: %w", err)
	}
	var text bytes.Buffer
	for _, e := range f(&p.known) {
		if err := json.NewEncoder(&text).Encode(e); err != nil {
			return err
		}
	}
	if text.Len() == 0 {
		return nil
	}
	if _, err := file.Write(text.Bytes()); err != nil {
		return err
	}
	return p.known.readOn(file)
}

// lock waits until no other process has the file.
func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// readOn takes up what the journal has more.
func (k *known) readOn(file io.ReaderAt) error {
	more, err := io.ReadAll(io.NewSectionReader(file, k.offset, 1<<62))
	if err != nil {
		return err
	}
	for line := range bytes.Lines(more) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		k.take(e)
	}
	k.offset += int64(len(more))
	return nil
}

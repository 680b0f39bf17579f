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

// JournalFile is the journal in the provider's directory. Processes only append to it, a line for each event,
// and all processes of the provider read it.
const JournalFile = "journal"

// These are the events of the journal.
const (
	made    = "made"    // an instance was created for its token
	again   = "again"   // an instance that had ended is running again
	ended   = "ended"   // an instance is no longer running
	stopped = "stopped" // an instance was removed
	crash   = "crash"   // the process crashes
)

// event is one line of the journal.
type event struct {
	What     string            `json:"what"`
	Token    string            `json:"token,omitempty"`
	Instance provider.Instance `json:"instance"`
}

// known is the state of all instances that a process has read from the journal.
type known struct {
	offset    int64
	instances map[string]provider.Instance // by id
	tokens    map[string]string            // ids
	starts    map[string]int               // the number of created instances, by token
	crashes   map[string]int               // by machine
}

func newKnown() known {
	return known{
		instances: map[string]provider.Instance{}, tokens: map[string]string{},
		starts: map[string]int{}, crashes: map[string]int{},
	}
}

// take applies one event to the state.
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

// do calls f with the events of all processes and appends the events that f returns to the journal. No other
// process can do so at the same time.
func (p *Provider) do(f func(k *known) []event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	file, err := os.OpenFile(filepath.Join(p.dir, JournalFile), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	// Closing the file frees its lock.
	defer file.Close()
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

// lock waits until no other process holds the file.
func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// readOn reads the lines that were added to the journal since its last call.
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

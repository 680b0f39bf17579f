package do

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// place is the folder of one run, locked while it lasts:
//
//	tools/   links to this binary, under the names that the command may call
//	s        the socket that they talk to
//	bashrc   what bash reads when it is the operator's shell
type place struct {
	dir  string
	lock *os.File // the open folder itself
}

// settle makes a place below base. Nobody else makes one there meanwhile, so
// that one without a lock is a killed process's; it is removed.
func settle(base string, links Links) (p place, err error) {
	entry, err := lock(base, unix.LOCK_EX)
	if err != nil {
		return p, err
	}
	defer entry.Close()
	sweep(base)
	if p.dir, err = os.MkdirTemp(base, ""); err != nil {
		return p, fmt.Errorf("cannot make a folder of hook tools: %w", err)
	}
	if p.lock, err = lock(p.dir, unix.LOCK_EX); err == nil {
		err = p.furnish(links)
	}
	if err != nil {
		p.remove()
	}
	return p, err
}

// lock opens a folder and locks it until it is closed.
func lock(dir string, how int) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot lock: %w", err)
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(f.Fd()), how)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock %q: %w", dir, err)
	}
	return f, nil
}

// sweep removes the places of processes that were killed.
func sweep(base string) {
	entries, _ := os.ReadDir(base) // what cannot be seen now will be another time
	for _, e := range entries {
		dir := filepath.Join(base, e.Name())
		if f, err := lock(dir, unix.LOCK_EX|unix.LOCK_NB); err == nil {
			_ = os.RemoveAll(dir)
			f.Close()
		}
	}
}

func (p place) furnish(links Links) error {
	if err := os.Mkdir(p.tools(), 0o700); err != nil {
		return fmt.Errorf("cannot make a folder of hook tools: %w", err)
	}
	for _, name := range links.Names {
		if err := os.Symlink(links.Binary, filepath.Join(p.tools(), name)); err != nil {
			return fmt.Errorf("cannot link a hook tool: %w", err)
		}
	}
	return nil
}

func (p place) tools() string  { return filepath.Join(p.dir, "tools") }
func (p place) socket() string { return filepath.Join(p.dir, "s") }
func (p place) bashrc() string { return filepath.Join(p.dir, "bashrc") }

// remove removes it and lets its lock go.
func (p place) remove() {
	_ = os.RemoveAll(p.dir)
	p.lock.Close() // of nil it does nothing
}

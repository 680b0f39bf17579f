package do

import (
	"fmt"
	"os"
	"path/filepath"

	"bijou/state/filelock"
)

// workDir is the folder of one run, locked while it lasts:
//
//	tools/   links to this binary, under the names that the command may call
//	s        the socket on which the tools reach it
//	bashrc   what bash reads when it is the operator's shell
type workDir struct {
	dir  string
	lock *os.File // the open folder itself
}

// newWorkDir locks base meanwhile, so that no other run makes a folder there: one without a
// lock is of a process that was killed, and is removed.
func newWorkDir(base string, links Links) (d workDir, err error) {
	entry, err := filelock.Lock(base)
	if err != nil {
		return d, fmt.Errorf("cannot lock %q: %w", base, err)
	}
	defer entry.Close()
	removeStaleDirs(base)
	if d.dir, err = os.MkdirTemp(base, ""); err != nil {
		return d, fmt.Errorf("cannot make a folder of hook tools: %w", err)
	}
	if d.lock, err = filelock.Lock(d.dir); err == nil {
		err = d.linkTools(links)
	}
	if err != nil {
		d.remove()
	}
	return d, err
}

func removeStaleDirs(base string) {
	entries, _ := os.ReadDir(base) // what cannot be seen now will be another time
	for _, e := range entries {
		dir := filepath.Join(base, e.Name())
		if f, err := filelock.TryLock(dir, os.O_RDONLY); err == nil {
			_ = os.RemoveAll(dir)
			f.Close()
		}
	}
}

func (d workDir) linkTools(links Links) error {
	if err := os.Mkdir(d.toolsPath(), 0o700); err != nil {
		return fmt.Errorf("cannot make a folder of hook tools: %w", err)
	}
	for _, name := range links.Names {
		if err := os.Symlink(links.Binary, filepath.Join(d.toolsPath(), name)); err != nil {
			return fmt.Errorf("cannot link a hook tool: %w", err)
		}
	}
	return nil
}

func (d workDir) toolsPath() string  { return filepath.Join(d.dir, "tools") }
func (d workDir) socketPath() string { return filepath.Join(d.dir, "s") }
func (d workDir) bashrcPath() string { return filepath.Join(d.dir, "bashrc") }

func (d workDir) remove() {
	_ = os.RemoveAll(d.dir)
	d.lock.Close() // of nil it does nothing
}

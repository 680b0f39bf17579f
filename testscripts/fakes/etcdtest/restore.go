package etcdtest

import (
	"os"
)

// Save copies the members' data for Restore, while none of them runs.
func (c *Cluster) Save() error {
	return c.whileStopped(func(m *Member) error {
		if err := os.RemoveAll(m.saved()); err != nil {
			return err
		}
		return os.CopyFS(m.saved(), os.DirFS(m.data()))
	})
}

// Restore restarts all members at the same addresses with the data from Save. All later commits are lost.
func (c *Cluster) Restore() error {
	return c.whileStopped(func(m *Member) error {
		if err := os.RemoveAll(m.data()); err != nil {
			return err
		}
		return os.CopyFS(m.data(), os.DirFS(m.saved()))
	})
}

func (m *Member) data() string  { return m.path(m.name + ".data") }
func (m *Member) saved() string { return m.path(m.name + ".saved") }

// whileStopped stops all members, calls do for each, and starts them again. It returns when all members
// answer.
func (c *Cluster) whileStopped(do func(m *Member) error) error {
	for _, m := range c.Members {
		if err := m.Kill(); err != nil {
			return err
		}
	}
	for _, m := range c.Members {
		if err := do(m); err != nil {
			return err
		}
	}
	return c.start()
}

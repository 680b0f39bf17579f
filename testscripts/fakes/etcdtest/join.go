package etcdtest

import (
	"os"
	"strings"
)

// Name returns the member's own name.
func (m *Member) Name() string { return m.name }

// Join starts a new member in place of one that was killed, without data, and with these flags instead of the
// killed member's flags. It returns when the member answers.
func (m *Member) Join(flags ...string) error {
	if err := os.RemoveAll(m.data()); err != nil {
		return err
	}
	for _, flag := range flags {
		name, _, _ := strings.Cut(flag, "=")
		for i, own := range m.args {
			if strings.HasPrefix(own, name+"=") {
				m.args[i] = flag
			}
		}
	}
	if err := m.spawn(); err != nil {
		return err
	}
	return m.Ready()
}

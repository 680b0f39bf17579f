package etcdtest

import (
	"os"
	"strings"
)

// Name is what the member calls itself.
func (m *Member) Name() string { return m.name }

// Join starts another member in the place of one that was killed, with no data and these
// flags instead of its own, and returns when it answers.
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

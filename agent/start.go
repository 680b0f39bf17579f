package agent

import (
	"context"
	"net"
	"os"
	"path/filepath"

	"bijou/agent/uniter"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/durable"
)

// start records that the machine runs, and where it is reached, and clears away
// what units that are gone have left.
func (m *machine) start(ctx context.Context) error {
	var units []string
	m.fault("before-machine")
	err := m.host.presence.as(state.MachineAgent(m.Machine))(ctx, func(tx *state.Tx) error {
		found, err := tx.Machine(m.Machine)
		if err != nil {
			return err
		}
		env, err := tx.Environment()
		if err != nil {
			return err
		}
		if units, err = tx.MachineUnits(m.Machine); err != nil {
			return err
		}
		if err := tx.SetAddresses(m.Machine, m.addresses(found.Addresses, env.Provider)); err != nil {
			return err
		}
		if err := tx.SetMachineTools(m.Machine, filepath.Base(m.Tools)); err != nil {
			return err
		}
		return tx.SetMachineStatus(m.Machine, state.MachineRunning, "")
	})
	if err != nil {
		return err
	}
	m.fault("after-machine")
	m.Log.Info("machine agent runs", "units", len(units))
	return m.sweep(units)
}

// fault is a named point at which a test may end the process.
func (m *machine) fault(point string) {
	if m.Fault != nil {
		m.Fault(point)
	}
}

// addresses are those of the options, else those that are known, else what can
// be found out. Machines of "local" are this host, and reach each other there.
func (m *machine) addresses(known state.Addresses, provider string) state.Addresses {
	found := "127.0.0.1"
	if provider != state.ProviderLocal {
		found = ownAddress()
	}
	first := func(addresses ...string) string {
		for _, a := range addresses {
			if a != "" {
				return a
			}
		}
		return ""
	}
	return state.Addresses{
		Private: first(m.Addresses.Private, known.Private, found),
		Public:  first(m.Addresses.Public, known.Public, m.Addresses.Private, known.Private, found),
	}
}

// ownAddress is the host's first address that others can reach.
func ownAddress() string {
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}

// sweep removes the folders of units that went while no agent ran, unless one
// runs there.
func (m *machine) sweep(units []string) error {
	here := make(map[string]bool)
	for _, unit := range units {
		here[unit] = true
	}
	for _, root := range []struct{ name, prefix string }{{"agents", ""}, {"units", "unit-"}} {
		path := filepath.Join(m.host.dir, root.name)
		if err := durable.MkdirAll(path, 0o755); err != nil {
			return err
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		for _, e := range entries {
			unit, err := charm.ParseUnitTag(root.prefix + e.Name())
			if err != nil || here[unit] {
				continue
			}
			folder := uniter.FolderOf(m.host.dir, unit)
			if err := folder.Remove(); err != nil {
				m.Log.Warn("cannot remove the folder of a unit that is gone", "folder", folder, "error", err)
			}
		}
	}
	return nil
}

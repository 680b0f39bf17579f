package agent

import (
	"cmp"
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"

	"bijou/agent/unitfolder"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/durable"
)

func (m *machineAgent) recordRunning(ctx context.Context) error {
	var units []string
	m.faultPoint("before-machine")
	err := m.host.presence.updaterFor(state.MachineAgent(m.Machine))(ctx, func(tx *state.Tx) error {
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
		if err := tx.SetAddresses(m.Machine, chooseAddresses(found.Addresses, env.Provider)); err != nil {
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
	m.faultPoint("after-machine")
	m.Log.Info("machine agent runs", "units", len(units))
	return m.removeStaleFolders(units)
}

func (m *machineAgent) faultPoint(point string) {
	if m.Fault != nil {
		m.Fault(point)
	}
}

// chooseAddresses prefers the addresses that are known to what the host says. Machines of
// "local" are this host, and reach each other there.
func chooseAddresses(known state.Addresses, provider string) state.Addresses {
	found := "127.0.0.1"
	if provider != state.ProviderLocal {
		found = hostAddress()
	}
	return state.Addresses{Private: cmp.Or(known.Private, found), Public: cmp.Or(known.Public, known.Private, found)}
}

func hostAddress() string {
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}

func (m *machineAgent) removeStaleFolders(units []string) error {
	for _, root := range []struct{ name, prefix string }{{"agents", ""}, {"units", "unit-"}} {
		path := filepath.Join(m.host.Dir, root.name)
		if err := durable.MkdirAll(path, 0o755); err != nil {
			return err
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		for _, e := range entries {
			unit, err := charm.ParseUnitTag(root.prefix + e.Name())
			if err != nil || slices.Contains(units, unit) {
				continue
			}
			folder := unitfolder.Of(m.host.Dir, unit)
			if err := folder.Remove(); err != nil {
				m.Log.Warn("cannot remove the folder of a unit that is gone", "folder", folder, "error", err)
			}
		}
	}
	return nil
}

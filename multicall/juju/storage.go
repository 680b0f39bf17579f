package juju

import (
	"fmt"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
)

// storageInfo is a storage as Juju shows it, with its pool.
type storageInfo struct {
	Kind        string            `json:"kind" yaml:"kind"`
	Life        state.Life        `json:"life" yaml:"life"`
	Status      map[string]string `json:"status" yaml:"status"`
	Persistent  bool              `json:"persistent" yaml:"persistent"` // the storage outlives its unit, but not its machine
	Pool        string            `json:"pool" yaml:"pool"`
	Size        int64             `json:"size,omitempty" yaml:"size,omitempty"` // the requested size in MiB
	SizeHeld    bool              `json:"size-held" yaml:"size-held"`           // whether the size is enforced
	Machine     string            `json:"machine" yaml:"machine"`
	Attachments map[string]any    `json:"attachments,omitempty" yaml:"attachments,omitempty"` // the attachment to the unit, as Juju shows it
}

// newStorageInfo returns a storage instance under Juju 3's keys.
func newStorageInfo(s state.Storage) storageInfo {
	info := storageInfo{
		Kind: "filesystem",
		Life: s.Life,
		Status: map[string]string{
			"current": storageState(s),
			"since":   formatTime(s.Since),
		},
		Persistent: s.Pool != charm.PoolTmpFS,
		Pool:       s.Pool,
		Size:       s.Size,
		SizeHeld:   s.IsHeld(),
		Machine:    s.Machine,
	}

	if s.Unit != "" {
		life := "alive"
		if s.State == state.StorageDetaching || s.State == state.StorageUnbinding {
			life = "dying"
		}
		attachment := map[string]string{"machine": s.Machine, "location": s.Location, "life": life}
		info.Attachments = map[string]any{"units": map[string]any{s.Unit: attachment}}
	}

	return info
}

// storageState returns Juju's word for the state of a storage.
func storageState(s state.Storage) string {
	switch {
	case s.State == state.StorageUnbinding:
		return "detaching"
	case s.State != state.StorageDetached:
		return string(s.State)
	case s.Life != state.Alive:
		return "dying"
	}

	return "detached"
}

// storageSize returns the size in MiB or GiB, and marks a size that is not enforced. It returns "-" if no
// size was requested.
func storageSize(s state.Storage) string {
	size := fmt.Sprintf("%dMiB", s.Size)
	switch {
	case s.Size == 0:
		return "-"
	case s.Size >= 1<<10:
		size = fmt.Sprintf("%.1fGiB", float64(s.Size)/(1<<10))
	}

	if !s.IsHeld() {
		size += ", not enforced"
	}
	return size
}

type storageCmd struct {
	Format     string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"Print as tabular, yaml or json; default tabular."`
	outputFlag `embed:""`
}

// Run lists the storage.
func (c storageCmd) Run(o *operator) error {
	storages, err := readChosen(o, (*state.View).Storages)
	if err != nil {
		return err
	}
	if len(storages) == 0 && c.Format == "tabular" {
		o.note("No storage to display.")
		return nil
	}

	return o.printTable(c.Format, newStorageInfos(storages), storageTable(storages))
}

// newStorageInfos returns the storage in the form that Juju prints: by id, under the key "storage".
func newStorageInfos(storages []state.Storage) map[string]any {
	infos := map[string]storageInfo{}
	for _, s := range storages {
		infos[s.ID] = newStorageInfo(s)
	}
	return map[string]any{"storage": infos}
}

// storageTable returns a table with a row for each storage.
func storageTable(storages []state.Storage) *console.Table {
	t := console.NewTable("UNIT", "STORAGE ID", "TYPE", "POOL", "SIZE", "STATUS", "MESSAGE")
	for _, s := range storages {
		message := s.Location
		if s.Unit == "" {
			message = "on machine " + s.Machine
		}
		t.AddWhole(console.Plain, console.NoTail,
			s.Unit, s.ID, "filesystem", s.Pool, storageSize(s), storageState(s), message)
	}

	return t
}

package juju

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
)

// storageInfo is a storage as Juju shows it, with what its pool is.
type storageInfo struct {
	Kind        string            `json:"kind" yaml:"kind"`
	Life        state.Life        `json:"life" yaml:"life"`
	Status      map[string]string `json:"status" yaml:"status"`
	Persistent  bool              `json:"persistent" yaml:"persistent"` // it outlives its unit, but not its machine
	Pool        string            `json:"pool" yaml:"pool"`
	Size        int64             `json:"size,omitempty" yaml:"size,omitempty"` // MiB that were asked for
	SizeHeld    bool              `json:"size-held" yaml:"size-held"`           // it cannot become larger
	Machine     string            `json:"machine" yaml:"machine"`
	Attachments map[string]any    `json:"attachments,omitempty" yaml:"attachments,omitempty"` // what the unit has of it, by the unit, below "units"
}

func newStorageInfo(s state.Storage) storageInfo {
	info := storageInfo{
		Kind: "filesystem", Life: s.Life, Status: map[string]string{"current": storageState(s), "since": formatTime(s.Since)}, Persistent: s.Pool != charm.PoolTmpFS,
		Pool: s.Pool, Size: s.Size, SizeHeld: s.IsHeld(), Machine: s.Machine,
	}
	if s.Unit != "" {
		life := "alive"
		if s.State == state.StorageDetaching || s.State == state.StorageUnbinding {
			life = "dying"
		}
		info.Attachments = map[string]any{"units": map[string]any{s.Unit: map[string]string{"machine": s.Machine, "location": s.Location, "life": life}}}
	}
	return info
}

// storageState is a word of Juju's.
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

func storageSize(s state.Storage) string {
	size := fmt.Sprintf("%dMiB", s.Size)
	switch {
	case s.Size == 0:
		return "-"
	case s.Size >= 1<<10:
		size = fmt.Sprintf("%.1fGiB", float64(s.Size)/(1<<10))
	}
	if !s.IsHeld() {
		size += ", not held"
	}
	return size
}

type storageCmd struct {
	Format string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"tabular, yaml or json; default tabular."`
}

// Run lists the storage.
func (c storageCmd) Run(o *operator) error {
	all, err := readChosen(o, (*state.View).Storages)
	if err != nil {
		return err
	}
	if len(all) == 0 && c.Format == "tabular" {
		o.note("No storage to display.")
		return nil
	}
	return o.printTable(c.Format, newStorageInfos(all), storageTable(all))
}

func newStorageInfos(all []state.Storage) map[string]any {
	infos := map[string]storageInfo{}
	for _, s := range all {
		infos[s.ID] = newStorageInfo(s)
	}
	return map[string]any{"storage": infos}
}

func storageTable(all []state.Storage) *console.Table {
	t := console.NewTable("UNIT", "STORAGE ID", "TYPE", "POOL", "SIZE", "STATUS", "MESSAGE")
	for _, s := range all {
		message := s.Location
		if s.Unit == "" {
			message = "on machine " + s.Machine
		}
		t.Add("", s.Unit, s.ID, "filesystem", s.Pool, storageSize(s), storageState(s), message)
	}
	return t
}

type showStorageCmd struct {
	Storage []string `arg:"" help:"Ids, as data/0."`
	Format  string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"yaml or json; default yaml."`
}

// Run prints the storage, all that were named or none.
func (c showStorageCmd) Run(o *operator) error {
	infos, err := readChosen(o, func(v *state.View) (map[string]storageInfo, error) {
		infos := map[string]storageInfo{}
		for _, id := range c.Storage {
			s, err := v.Storage(id)
			if err != nil {
				return nil, err
			}
			infos[id] = newStorageInfo(s)
		}
		return infos, nil
	})
	if err != nil {
		return err
	}
	return o.encode(c.Format, infos)
}

// parseDirectives refuses a name that is there twice.
func parseDirectives(words []string) (map[string]charm.Directive, error) {
	all := map[string]charm.Directive{}
	for _, word := range words {
		name, d, err := charm.ParseDirective(word)
		if _, twice := all[name]; err == nil && twice {
			err = charm.Invalidf("storage %q is given twice", name)
		}
		if err != nil {
			return nil, err
		}
		all[name] = d
	}
	return all, nil
}

// noteSizes says which sizes are only asked for.
func (d *deployment) noteSizes() {
	for _, name := range slices.Sorted(maps.Keys(d.storage)) {
		if s := d.storage[name]; s.Size > 0 && s.Pool != charm.PoolTmpFS {
			d.o.note("storage %q: pool %s has no way to hold it to its size of %dM", name, s.Pool, s.Size)
		}
	}
}

func (o *operator) noteUnsupported(c *charm.Charm, jujuVersion string) {
	if required, optional := charm.Unsupported(c.Meta, jujuVersion); len(required)+len(optional) > 0 {
		o.note("warning: the charm asks for %s: this version of bijou has none", strings.Join(append(required, optional...), ", "))
	}
}

type addStorageCmd struct {
	Unit    string   `arg:"" help:"The unit."`
	Storage []string `arg:"" name:"name[=pool,size,count]" help:"Storage of its charm, with a pool, a size and a count of each, in any order."`
	waitFlags
}

// Run adds the storage, all or none.
func (c addStorageCmd) Run(o *operator) error {
	directives, err := parseDirectives(c.Storage)
	if err != nil {
		return err
	}
	var added []string
	err = o.update(func(tx *state.Tx) error {
		added = nil
		for _, name := range slices.Sorted(maps.Keys(directives)) {
			ids, err := tx.AddStorage(c.Unit, name, directives[name])
			if err != nil {
				return err
			}
			added = append(added, ids...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range added {
		fmt.Fprintf(o.streams.Out, "added storage %s to %s\n", id, c.Unit)
	}
	o.affect(untilIdle, c.Unit)
	return nil
}

type attachStorageCmd struct {
	Unit    string   `arg:"" help:"The unit."`
	Storage []string `arg:"" help:"Ids of storage that no unit has, on the unit's machine."`
	waitFlags
}

// Run attaches the storage, all or none.
func (c attachStorageCmd) Run(o *operator) error {
	return o.changeStorage(c.Storage, "attaching %s to "+c.Unit, func(tx *state.Tx, id string) error { return tx.AttachStorage(c.Unit, id) })
}

// changeStorage says what begins; the agents go on with it.
func (o *operator) changeStorage(ids []string, says string, change func(tx *state.Tx, id string) error) error {
	var units []string
	err := o.update(func(tx *state.Tx) error {
		units = nil
		for _, id := range ids {
			if err := change(tx, id); err != nil {
				return err
			}
			s, err := tx.Storage(id)
			if err != nil {
				return err
			}
			units = append(units, s.Unit)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		fmt.Fprintf(o.streams.Out, says+"\n", id)
	}
	o.affect(untilIdle, units...)
	return nil
}

type detachStorageCmd struct {
	Storage []string `arg:"" help:"Ids. What they hold stays on the machine."`
	waitFlags
}

// Run detaches the storage, all or none.
func (c detachStorageCmd) Run(o *operator) error {
	return o.changeStorage(c.Storage, "detaching %s", (*state.Tx).DetachStorage)
}

type removeStorageCmd struct {
	Storage []string `arg:"" help:"Ids."`
	Force   bool     `help:"Also from a unit that has it, which is told to give it back first."`
	removalFlags
}

// Run removes the storage, all or none.
func (c removeStorageCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		remove := func(tx *state.Tx, id string) error { return tx.RemoveStorage(id, c.Force) }
		return c.removeAll(o, s, removalKind{"storage", "goes, with all that it holds", remove, nil, false}, c.Storage)
	})
}

package simulation

import (
	"maps"
	"slices"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// drift replaces a component of a server, as an operator could, with a version that differs from the version
// of the last update. It does nothing while an update runs, since the rules would then blame the update.
func (w *world) drift(h *host) {
	r := get[record.Request](w.store, keys.Current)
	names := slices.Sorted(maps.Keys(h.members))
	if r == nil || !r.Succeeded() || h.dead || w.blind || h.effect != nil {
		return
	}
	w.faults["component drifted"]++
	name := names[w.r.IntN(len(names))]
	w.logf("on server %d %s drifts", h.lrn, name)
	h.members[name].version = "drifted"
}

// inventories returns the inventories that workers would write for their servers.
func (w *world) inventories(r *record.Request) map[int]record.Inventory {
	all := map[int]record.Inventory{}
	for _, h := range w.servers {
		if r == nil || !h.worker.up || h.effect != nil || h.status == nil || !h.status.IsFor(*r) || !h.status.Finished {
			if w.registered(h.lrn) && h.inventory.Request != 0 {
				all[h.lrn] = h.inventory // the inventory in the worker's last record
			}
			continue
		}
		i := record.Inventory{Request: r.ID, Differs: map[string][]string{}}
		for name, m := range h.members {
			if m.version != h.plan().component(name) {
				i.Differs[name] = []string{"it is " + m.version}
			}
		}
		w.addHealth(h, &i)
		h.inventory = i
		all[h.lrn] = i
	}
	return all
}

// repair is an operator's command to repair all servers or one.
func (w *world) repair() {
	r := record.Repair{}
	if w.chance(2) {
		r.Servers = []int{w.servers[w.r.IntN(len(w.servers))].lrn}
	}
	w.order("repair", func() ([]updater.Change, error) { return []updater.Change{updater.Put(keys.Repair, r)}, nil })
}

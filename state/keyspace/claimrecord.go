package keyspace

import (
	"fmt"
	"slices"
	"time"
)

// Holder is the holder of a claim: its place, which no reboot, remount or new kernel
// changes, and its process.
type Holder struct {
	Host   string `json:"host"`   // machine-id(5), or where there is none "name:" and the host's name
	Folder string `json:"folder"` // absolute, links followed
	Name   string `json:"name"`   // the host's, for people

	// The process. All are empty of a holder that has none (yet).
	Boot         string `json:"boot,omitempty"`  // the kernel's boot id
	PIDNamespace string `json:"pids,omitempty"`  // the namespace that the process id belongs to
	PID          int    `json:"pid,omitempty"`   //
	Start        string `json:"start,omitempty"` // in clock ticks since boot, as in /proc/PID/stat

	Since time.Time `json:"since"` // when it took the claim
}

// SamePlace reports whether both are of one host and folder.
func (h Holder) SamePlace(o Holder) bool { return h.Host == o.Host && h.Folder == o.Folder }

func (h Holder) sameProcess(o Holder) bool {
	return h.Boot == o.Boot && h.PIDNamespace == o.PIDNamespace && h.PID == o.PID && h.Start == o.Start
}

// Identity tells one holder from the next: nothing that is stored of one is of another.
func (h Holder) Identity() any {
	h.Name = ""
	h.Since = time.Time{}
	return h
}

// String returns the holder's process, directory and host for messages.
func (h Holder) String() string {
	who := "an agent"
	if h.PID != 0 {
		who = fmt.Sprintf("process %d", h.PID)
	}
	return fmt.Sprintf("%s of %s on host %q", who, h.Folder, h.Name)
}

// Claimant asks for a claim.
type Claimant struct {
	Holder
	// Lives reports whether the process of another holder lives, whose boot and
	// process namespace are this one's.
	Lives func(h Holder) bool
	// Moved reports whether a folder that this host had is the claimant's now: it leads there, or is gone.
	// Nil: a claimant of another folder is another one.
	Moved func(folder string) bool
}

// hasMovedFrom reports whether the holder is the claimant before its folder was moved.
func (by Claimant) hasMovedFrom(h Holder) bool {
	return by.Moved != nil && h.Host == by.Host && h.Folder != by.Folder && by.Moved(h.Folder)
}

// ClaimRecord is a claim in the store, at its key. Its epoch grows with each holder and never falls,
// so that whoever held it before commits nothing more.
type ClaimRecord struct {
	Epoch  int64   `json:"epoch"`
	Holder *Holder `json:"holder,omitempty"` // nil: whoever comes first may have it
	// FormerBoots are the boots of this place whose holders were succeeded by one of another boot,
	// the last ones. A boot never comes back: where one does, two hosts were made from one disk.
	FormerBoots []string `json:"former,omitempty"`
}

const maxFormerBoots = 16

type claimVerdict int

const (
	claimGranted  claimVerdict = iota
	claimDoubtful              // the holder may live, which only its presence can tell
	claimRefused
)

// decide decides whether by gets the claim. If it is refused, why names the holder. It is in doubt if this
// host cannot see whether the holder's process lives.
func (r ClaimRecord) decide(by Claimant) (v claimVerdict, why string) {
	h := r.Holder
	if h == nil {
		return claimGranted, ""
	}

	moved := by.hasMovedFrom(*h)
	switch {
	case !h.SamePlace(by.Holder) && !moved:
		return claimRefused, fmt.Sprintf("it is held by %s since %s", h, h.Since.Format(time.DateTime+" MST"))
	case moved && h.Boot != by.Boot: // this may be a copy of the disk, and the holder still runs elsewhere
		return claimDoubtful, ""
	case h.Boot == "" || h.sameProcess(by.Holder):
		return claimGranted, ""
	case h.Boot != by.Boot && slices.Contains(r.FormerBoots, by.Boot):
		return claimRefused, fmt.Sprintf("it is held by %s since %s, of another boot than this one, and that came later: two hosts have the machine-id %s",
			h, h.Since.Format(time.DateTime+" MST"), h.Host)
	case h.Boot != by.Boot:
		return claimGranted, ""
	case h.PIDNamespace != by.PIDNamespace:
		return claimDoubtful, ""
	case by.Lives != nil && by.Lives(*h):
		return claimRefused, fmt.Sprintf("it is held by %s since %s, which lives",
			h, h.Since.Format(time.DateTime+" MST"))
	}

	return claimGranted, ""
}

// nextRecord returns the record of the next holder, with an epoch above minEpoch and the present one.
func (r ClaimRecord) nextRecord(by *Holder, minEpoch int64) ClaimRecord {
	n := ClaimRecord{Epoch: max(r.Epoch, minEpoch) + 1, Holder: by}
	if r.Holder == nil || by == nil || r.Holder.Host != by.Host {
		return n
	}

	n.FormerBoots = r.FormerBoots
	if old := r.Holder.Boot; old != "" && old != by.Boot {
		n.FormerBoots = append(slices.Clone(r.FormerBoots), old)
		n.FormerBoots = n.FormerBoots[max(0, len(n.FormerBoots)-maxFormerBoots):]
	}

	return n
}

// ClaimHolder returns the present or last holder of the claim at the key; ok is false if there was none.
func (v *View) ClaimHolder(key string) (h Holder, ok bool, err error) {
	d, _, err := Load[ClaimRecord](v, key)
	if err != nil || d.Holder == nil {
		return Holder{}, false, err
	}
	return *d.Holder, true, nil
}

// AssignClaim takes the claim at the key from its holder, and reserves it for the place to or, if to is nil,
// for the first process that takes it. It raises the claim's epoch.
func (tx *Tx) AssignClaim(key string, to *Holder) error {
	d, _, err := Load[ClaimRecord](tx, key)
	if err != nil {
		return err
	}

	n := d.nextRecord(to, 0)
	n.FormerBoots = nil
	return tx.Put(key, n)
}

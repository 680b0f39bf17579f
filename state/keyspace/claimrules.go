package keyspace

import (
	"fmt"
	"slices"
	"time"
)

// Holder is the holder of a claim: a process at a place. The place is a directory of a host, and stays the
// same after a reboot, a remount or a kernel upgrade.
type Holder struct {
	Host   string `json:"host"`   // machine-id(5), or "name:" and the host name if there is no machine-id
	Folder string `json:"folder"` // absolute path without symlinks
	Name   string `json:"name"`   // host name, for messages

	// The process. These fields are empty if no process is recorded.
	Boot         string `json:"boot,omitempty"`  // the kernel's boot id
	PIDNamespace string `json:"pids,omitempty"`  // the namespace that PID belongs to
	PID          int    `json:"pid,omitempty"`   // process id
	Start        string `json:"start,omitempty"` // in clock ticks since boot, as in /proc/PID/stat

	Since time.Time `json:"since"` // when the holder took the claim
}

// SamePlace reports whether both holders have the same host and directory.
func (h Holder) SamePlace(other Holder) bool { return h.Host == other.Host && h.Folder == other.Folder }

// withoutProcess returns the holder with empty fields for the process, as in a record that names no process.
func (h Holder) withoutProcess() Holder {
	h.Boot = ""
	h.PIDNamespace = ""
	h.PID = 0
	h.Start = ""
	return h
}

// sameProcess reports whether both holders name the same process.
func (h Holder) sameProcess(other Holder) bool {
	return h.Boot == other.Boot && h.PIDNamespace == other.PIDNamespace && h.PID == other.PID &&
		h.Start == other.Start
}

// Identity returns the place and process of the holder. Package carry keeps unknown members of a record only
// while the identity is the same.
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

// Claimant is a process that requests a claim.
type Claimant struct {
	Holder
	// Lives reports whether the process of h is running. It is called only for a process with the claimant's
	// boot id and PID namespace. If it is nil, such a process counts as exited.
	Lives func(h Holder) bool
	// Moved reports whether the claimant's directory may previously have been at the path folder. This is the
	// case if the path now leads to the directory, or no longer exists. If Moved is nil, a different
	// directory always counts as a different place.
	Moved func(folder string) bool
}

// hasMovedFrom reports whether h describes this claimant before its directory was moved.
func (by Claimant) hasMovedFrom(h Holder) bool {
	return by.Moved != nil && h.Host == by.Host && h.Folder != by.Folder && by.Moved(h.Folder)
}

// ClaimRecord is the record of a claim in the store. Its epoch grows with each holder. A holder that finds an
// earlier epoch than its own knows that the store was restored to an earlier time.
type ClaimRecord struct {
	Epoch  int64   `json:"epoch"`
	Holder *Holder `json:"holder,omitempty"` // nil if the first claimant gets the claim
	// FormerBoots are the last maxFormerBoots boot ids that the host had before the holder's boot id. A host
	// never uses a boot id twice. If a former id appears again, two hosts run from copies of the same disk.
	FormerBoots []string `json:"former,omitempty"`
}

const maxFormerBoots = 16

// claimVerdict says whether a claimant gets a claim.
type claimVerdict int

const (
	claimGranted  claimVerdict = iota
	claimDoubtful              // only the holder's presence can show whether its process is running
	claimRefused
)

// decide decides whether the claimant gets the claim. The verdict is claimDoubtful if this host cannot see
// whether the holder's process is running. why is the reason for a refusal, and names the holder.
func (r ClaimRecord) decide(by Claimant) (v claimVerdict, why string) {
	h := r.Holder
	if h == nil {
		return claimGranted, ""
	}

	hasMoved := by.hasMovedFrom(*h)
	switch {
	case !h.SamePlace(by.Holder) && !hasMoved:
		return claimRefused, fmt.Sprintf("the claim is held by %s since %s", h, h.Since.Format(time.DateTime+" MST"))
	case hasMoved && h.Boot != by.Boot:
		// This may be a copy of the disk, while the holder still runs on the original.
		return claimDoubtful, ""
	case h.Boot == "" || h.sameProcess(by.Holder):
		// The claim is reserved for this place, or already held by this process.
		return claimGranted, ""
	case h.Boot != by.Boot && slices.Contains(r.FormerBoots, by.Boot):
		return claimRefused, fmt.Sprintf("the claim is held by %s since %s, from a later boot than this one: two hosts have the machine-id %s",
			h, h.Since.Format(time.DateTime+" MST"), h.Host)
	case h.Boot != by.Boot:
		// The host was rebooted, so the holder's process is gone.
		return claimGranted, ""
	case h.PIDNamespace != by.PIDNamespace:
		return claimDoubtful, ""
	case by.Lives != nil && by.Lives(*h):
		return claimRefused, fmt.Sprintf("the claim is held by %s since %s, which is still running",
			h, h.Since.Format(time.DateTime+" MST"))
	}

	// The holder's process counts as exited.
	return claimGranted, ""
}

// nextRecord returns the record for the next holder, by, which is nil for a claim without a holder. Its epoch is
// above the current epoch and minEpoch. It keeps the former boot ids only if the host stays the same, and then adds
// the previous holder's boot id, if there is one and by does not have the same.
func (r ClaimRecord) nextRecord(by *Holder, minEpoch int64) ClaimRecord {
	next := ClaimRecord{Epoch: max(r.Epoch, minEpoch) + 1, Holder: by}
	if r.Holder == nil || by == nil || r.Holder.Host != by.Host {
		return next
	}

	next.FormerBoots = r.FormerBoots
	oldBoot := r.Holder.Boot
	if oldBoot != "" && oldBoot != by.Boot {
		next.FormerBoots = append(slices.Clone(r.FormerBoots), oldBoot)
		excess := max(0, len(next.FormerBoots)-maxFormerBoots)
		next.FormerBoots = next.FormerBoots[excess:]
	}

	return next
}

// ClaimHolder returns the current or last holder of the claim at the key. It returns ok false if there is no
// claim, or the claim has no holder.
func (v *View) ClaimHolder(key string) (h Holder, ok bool, err error) {
	d, _, err := Load[ClaimRecord](v, key)
	if err != nil {
		return Holder{}, false, err
	}
	if d.Holder == nil {
		return Holder{}, false, nil
	}
	return *d.Holder, true, nil
}

// AssignClaim takes the claim at the key from its holder, and raises the claim's epoch. It reserves the claim
// for the place in to. If to is nil, the first claimant gets the claim.
func (tx *Tx) AssignClaim(key string, to *Holder) error {
	d, _, err := Load[ClaimRecord](tx, key)
	if err != nil {
		return err
	}

	next := d.nextRecord(to, 0) // 0 sets no further lower bound for the epoch
	// The caller has decided who gets the claim, so no former boot id counts against a claimant.
	next.FormerBoots = nil
	return tx.Put(key, next)
}

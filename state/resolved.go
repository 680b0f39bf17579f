package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// SetResolved records an operator's answer to the error of a unit or, with relation (its
// name or id), of one of its relations: with retry the failed hook, which is returned,
// runs again, otherwise it counts as done. The agent clears the answer. A unit that
// waits since it was restored goes on. ErrNotInError and ErrAlreadyResolved carry a
// message for the operator, who is not wrong; ErrNotFound: no such unit or relation.
func (tx *Tx) SetResolved(unit, relation string, retry bool) (failed Hook, err error) {
	u, err := tx.Unit(unit)
	if err != nil {
		return failed, err
	}
	answer := ResolvedDone
	if retry {
		answer = ResolvedRetry
	}
	if relation != "" {
		return tx.resolveRelation(u, relation, answer)
	}
	restored, err := tx.acceptRestored(unit)
	if err != nil {
		return failed, err
	}
	w, err := tx.Workflow(unit)
	switch {
	case err != nil || restored && w.Failure == nil:
		return failed, err
	case w.Failure == nil:
		return failed, refuse(ErrNotInError, "unit %q is already running", unit)
	case u.Resolved != Unresolved:
		return failed, refuse(ErrAlreadyResolved, "unit %q is already marked as resolved", unit)
	}
	u.Resolved = answer
	return w.Failure.Hook, tx.keys.Put(keys.Unit(unit), u)
}

func (tx *Tx) resolveRelation(u Unit, text string, answer Resolved) (failed Hook, err error) {
	r, err := tx.relationOf(u, text)
	if err != nil {
		return failed, err
	}
	st, _, err := tx.RelationState(u.Name, r.ID)
	switch {
	case err != nil:
		return failed, err
	case st.Failure == nil:
		return failed, refuse(ErrNotInError, "%s of unit %q is already running", r, u.Name)
	case u.ResolvedRelations[r.ID] != Unresolved:
		return failed, refuse(ErrAlreadyResolved, "%s of unit %q is already marked as resolved", r, u.Name)
	}
	answers := map[int]Resolved{}
	maps.Copy(answers, u.ResolvedRelations)
	answers[r.ID] = answer
	u.ResolvedRelations = answers
	return st.Failure.Hook, tx.keys.Put(keys.Unit(u.Name), u)
}

// relationOf finds a relation of the unit's service by "relation-3", "3", "db:3" or
// "db"; a name of several is an error that lists them.
func (v *View) relationOf(u Unit, text string) (Relation, error) {
	name, number, _ := strings.Cut(text, ":")
	id, err := strconv.Atoi(cmp.Or(number, strings.TrimPrefix(text, "relation-")))
	byID := err == nil
	found, err := v.findRelations(u.Service, func(n int, index relationIndex) bool {
		return byID && n == id || !byID && index.Name == name
	})
	switch {
	case err != nil:
		return Relation{}, err
	case len(found) == 0:
		return Relation{}, refuse(ErrNotFound, "Relation not found")
	case len(found) == 1:
		return found[0], nil
	}
	return Relation{}, fmt.Errorf("relation %q of unit %q is ambiguous: it could be %s", text, u.Name, describeRelations(found))
}

// ClearResolved removes the answer to the unit's error, or with a relation's id to the
// relation's; relation is NoRelation for the unit's own.
func (tx *Tx) ClearResolved(unit string, relation int) error {
	u, err := tx.Unit(unit)
	if err != nil {
		return IgnoreNotFound(err)
	}
	if relation == NoRelation {
		u.Resolved = Unresolved
	} else {
		u.ResolvedRelations = maps.Clone(u.ResolvedRelations)
		delete(u.ResolvedRelations, relation)
	}
	return tx.keys.Put(keys.Unit(unit), u)
}

// Restored marks a unit whose records come from a backup, until its folder is known to
// agree with them: a folder may have come further since, or not as far.
type Restored struct {
	Backup time.Time `json:"backup"` // when that was made
	// Differs says what its agent has found to be otherwise; empty: it has not looked
	// yet. The unit waits as long as the mark is there.
	Differs string `json:"differs,omitempty"`
	// Storage has the ids of the unit's storages whose folders its agent has not found. An
	// operator's answer has them made again, empty.
	Storage []string `json:"storage,omitempty"`
	// Adopted: the folder counts as the backup says; only that of its storage must be there.
	Adopted bool `json:"adopted,omitempty"`
	// Accepted: an operator has answered before the agent has looked.
	Accepted bool `json:"accepted,omitempty"`
}

// String returns the message in the status.
func (r Restored) String() string {
	what := "its agent has not yet compared its folder"
	if r.Differs != "" {
		what = r.Differs + "; look at it, then juju resolved"
	}
	if len(r.Storage) > 0 {
		what += ", which makes storage " + strings.Join(r.Storage, ", ") + " again, empty"
	}
	return fmt.Sprintf("restored from the backup of %s: %s", r.Backup.Format(time.RFC3339), what)
}

// Restored reads a unit's mark; ok is false if there is none (any more).
func (v *View) Restored(unit string) (r Restored, ok bool, err error) {
	return keyspace.Load[Restored](v.keys, keys.Restored(unit))
}

// SetRestoredDiffers records how a restored unit's folder differs from its records, and the
// storages whose folders are not there; how is empty: it does not, and the mark goes, as it
// does if an operator has answered already. Without a mark it changes nothing.
func (tx *Tx) SetRestoredDiffers(unit, how string, missing []string) error {
	r, ok, err := tx.Restored(unit)
	if err != nil || !ok {
		return err
	}
	r.Differs, r.Storage = how, missing
	if r.Accepted && how != "" {
		return tx.endRestored(unit, r)
	}
	return tx.keys.PutOrRemove(keys.Restored(unit), r, how != "")
}

// acceptRestored is for an operator who has looked. If the unit's agent has not, and the unit has
// storage, it looks first: nobody else knows which of that is there.
func (tx *Tx) acceptRestored(unit string) (was bool, err error) {
	r, ok, err := tx.Restored(unit)
	if err != nil || !ok {
		return false, err
	}
	if r.Differs != "" {
		return true, tx.endRestored(unit, r)
	}
	if r.Accepted {
		return true, refuse(ErrAlreadyResolved, "unit %q is already marked as resolved", unit)
	}

	all, err := tx.UnitStorages(unit)
	if err != nil {
		return true, err
	}
	r.Accepted = true
	return true, tx.keys.PutOrRemove(keys.Restored(unit), r, len(all) > 0)
}

// endRestored takes the unit's mark away: the unit goes on from its records, with its charm put in
// place again, and what storage is not there made again.
func (tx *Tx) endRestored(unit string, r Restored) error {
	tx.keys.Remove(keys.Restored(unit))
	all, err := tx.UnitStorages(unit)
	if err != nil {
		return err
	}
	for _, s := range all {
		if !slices.Contains(r.Storage, s.ID) {
			continue
		}
		if err := tx.ReattachStorage(s.ID); err != nil {
			return err
		}
	}

	w, err := tx.Workflow(unit)
	if err != nil || w.Charm == "" {
		return err
	}
	w.Deploying = w.Charm
	return tx.PutWorkflow(unit, w)
}

// RunningHook is a unit's running hook in Status.
type RunningHook struct {
	Name     string    `yaml:"name" json:"name"` // the hook's, "action 3 (backup)", or "command 4"
	Relation string    `yaml:"relation,omitempty" json:"relation,omitempty"`
	Remote   string    `yaml:"remote-unit,omitempty" json:"remote-unit,omitempty"`
	Since    time.Time `yaml:"since" json:"since"`
	Holder   string    `yaml:"held-by,omitempty" json:"held-by,omitempty"` // who runs it by hand
}

// Running reads a unit's running hook; nil: there is none, or its agent is gone.
func (v *View) Running(unit string) (*RunningHook, error) {
	op, runs, err := v.Op(unit)
	if err == nil && runs {
		runs, err = v.IsPresent(UnitAgent(unit))
	}
	if err != nil || !runs {
		return nil, err
	}
	r := op.Running()
	return &r, nil
}

// Running returns what Status shows of the operation.
func (op Op) Running() RunningHook {
	h := op.Hook
	r := RunningHook{Name: h.Name, Remote: h.RemoteUnit, Since: op.Started, Holder: op.Holder}
	if h.Kind == KindAction || h.Kind == KindCommand {
		r.Name = h.String()
	}
	if h.Relation != NoRelation {
		r.Relation = Relation{ID: h.Relation}.String()
	}
	return r
}

// HeldBy is a clause about the operator who runs it by hand; empty if there is none.
func (r RunningHook) HeldBy() string {
	if r.Holder == "" {
		return ""
	}
	return ", held by " + r.Holder
}

// Interrupts reports whether an operator has asked for the end of that run.
func (u Unit) Interrupts(op Op) bool { return u.Interrupt != "" && u.Interrupt == op.ID }

// Interrupt asks for the end of the unit's running hook: its agent terminates it, so that it has
// failed, and does not retry it by itself. ErrNotFound: there is no such unit, or no hook runs.
func (tx *Tx) Interrupt(unit string) (Op, error) {
	u, err := tx.Unit(unit)
	if err != nil {
		return Op{}, err
	}
	op, ok, err := tx.Op(unit)
	if err == nil && !ok {
		err = refuse(ErrNotFound, "unit %q runs nothing", unit)
	}
	if err != nil {
		return Op{}, err
	}
	u.Interrupt = op.ID
	return op, tx.keys.Put(keys.Unit(unit), u)
}

// Debug is an operator's session in which a unit's hooks are run by hand. It is on
// the unit's machine.
type Debug struct {
	Socket string   `json:"socket"`          // of its tmux, a path
	Hooks  []string `json:"hooks,omitempty"` // their names; empty: all that the charm has
	By     string   `json:"by,omitempty"`    // whose it is, USER@HOST
	Owner  *int     `json:"owner,omitempty"` // the user id that the socket's folder has; nil: nobody noted it
}

// DebugSession is the name of its tmux session; its socket tells one from another.
const DebugSession = "debug"

// String names its operator, and the command that attaches to it.
func (d Debug) String() string {
	return fmt.Sprintf("%s (debug-hooks; tmux -S %s attach -t %s)", cmp.Or(d.By, "an operator"), d.Socket, DebugSession)
}

// Wants reports whether that hook is to be run by hand, and whether it was asked for by name.
func (d Debug) Wants(hook string) (wanted, named bool) {
	named = slices.Contains(d.Hooks, hook)
	return named || len(d.Hooks) == 0, named
}

// Debug reads a unit's debug session; ok is false if there is none.
func (v *View) Debug(unit string) (d Debug, ok bool, err error) {
	return keyspace.Load[Debug](v.keys, keys.Debug(unit))
}

// SetDebug records a unit's debug session. ErrNotFound.
func (tx *Tx) SetDebug(unit string, d Debug) error {
	if _, err := tx.Unit(unit); err != nil {
		return err
	}
	return tx.keys.Put(keys.Debug(unit), d)
}

// ClearDebug removes a unit's debug session, if it is that one.
func (tx *Tx) ClearDebug(unit, socket string) error {
	d, ok, err := tx.Debug(unit)
	if err != nil || !ok || d.Socket != socket {
		return err
	}
	tx.keys.Remove(keys.Debug(unit))
	return nil
}

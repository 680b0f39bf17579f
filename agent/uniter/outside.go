package uniter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/agent/hook"
	"bijou/hookenv/server"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/backoff"
	"bijou/state/charm"
)

// outside implements [server.Outside], for programs that do not run in a hook. It adds commands to the unit's
// queue of actions, as `juju exec` does. Goroutines other than the unit's loop use it, so it does not use
// anything that the loop owns.
type outside struct{ Options }

// outside returns the unit's outside for a server. Its Update is the one that was passed to Run, since the method
// commit changes the loop's cache.
func (u *uniter) outside() outside {
	o := outside{u.Options}
	o.Update = u.rawUpdate
	return o
}

// Identify implements [server.Outside].
func (o outside) Identify() server.Identity {
	return server.Identity{Unit: o.Unit, Environment: o.Environment.Name, UUID: o.Environment.UUID}
}

// Enqueue implements [server.Outside]. It adds the command to the unit's queue of actions.
func (o outside) Enqueue(ctx context.Context, c server.Command) (id int, err error) {
	if c.Line == "" {
		return 0, errors.New("no command given")
	}
	namesRemote := c.RemoteUnit != "" || c.RemoteService != ""
	if namesRemote && c.Relation == "" {
		return 0, errors.New("a remote unit or application can be given only together with a relation")
	}

	err = o.Update(ctx, func(tx *state.Tx) (err error) {
		id, err = o.addCommand(tx, c)
		return err
	})
	if err != nil {
		return 0, err
	}

	o.Log.Info("a program on this machine runs a command as the unit", "id", id)
	return id, nil
}

// addCommand adds the command to the unit's queue of actions, and returns its id.
func (o outside) addCommand(tx *state.Tx, c server.Command) (id int, err error) {
	a := actions.Action{Unit: o.Unit, Command: []string{c.Line}}
	if c.Relation != "" {
		records, err := tx.Uniter(o.Unit)
		if err != nil {
			return 0, err
		}
		if a.Relation, err = findRelation(records, c); err != nil {
			return 0, err
		}
	}

	added, err := actions.Add(tx, a, now())
	return added.ID, err
}

// Await implements [server.Outside]. It waits for the end of the command, and retries while the store cannot be
// reached. ok is false if ctx is done before the command has ended.
func (o outside) Await(ctx context.Context, id int) (end server.CommandEnd, ok bool, err error) {
	for ctx.Err() == nil {
		c, err := state.Read(ctx, o.State, func(v *state.View) (command, error) { return o.readCommand(v, id) })
		if errors.Is(err, state.ErrAway) {
			_ = backoff.Sleep(ctx, time.Second) // if ctx is done, the loop ends
			continue
		}
		if ctx.Err() != nil {
			return end, false, nil
		}
		if err != nil {
			return end, false, err
		}
		if c.Ended() {
			return c.end(), true, nil
		}

		// If the watch fails, the next iteration reads the command again.
		_ = o.State.Await(ctx, c.revision, actions.Watch(id))
	}

	return end, false, nil
}

// command is a command with its output so far, read at one revision.
type command struct {
	actions.Action
	output   actions.Output
	revision int64
}

// readCommand returns a command of the unit by its id. It returns an error if the id belongs to another unit's
// command, or to an action.
func (o outside) readCommand(v *state.View, id int) (c command, err error) {
	if c.Action, err = actions.Get(v, id); err != nil {
		return c, err
	}
	if c.Unit != o.Unit || !c.IsCommand() {
		return c, fmt.Errorf("%d is not a command of unit %q", id, o.Unit)
	}

	if c.output, err = actions.ReadOutput(v, c.Action); err != nil {
		return c, err
	}
	c.revision, err = v.Revision()
	return c, err
}

// end returns the result of a command that has ended.
func (c command) end() server.CommandEnd {
	end := server.CommandEnd{Stdout: c.output.Stdout, Stderr: c.output.Stderr, Dropped: c.output.Dropped}
	if c.Code != nil {
		end.Exit = *c.Code
	}

	// A command can fail without an exit code. If the store has refused the command's changes, the command has
	// failed although its process has exited with 0.
	if c.Status != actions.Completed && end.Exit == 0 {
		end.Exit = 1
		end.Problem = cmp.Or(c.Message, "the command is "+string(c.Status))
	}
	return end
}

// findRelation returns the relation in which a command runs, with the remote unit from chooseRemote. It
// returns an error if c.Relation does not name exactly one relation of the unit, if c.RemoteService is not
// the remote application of that relation, or if no remote unit can be chosen.
func findRelation(records state.Uniter, c server.Command) (*actions.Relation, error) {
	id, err := findRelationID(records.Relations, c.Relation)
	if err != nil {
		return nil, err
	}

	r := records.Relations[id]
	if c.RemoteService != "" && c.RemoteService != r.RemoteService {
		return nil, fmt.Errorf("the remote application of relation %q is %q, and not %q",
			c.Relation, r.RemoteService, c.RemoteService)
	}

	remote, err := chooseRemote(records.Members[id], c)
	if err != nil {
		return nil, err
	}
	return &actions.Relation{ID: id, Name: r.Name, RemoteUnit: remote, RemoteService: r.RemoteService}, nil
}

// findRelationID returns the id of the only relation that the word names. It ignores relations that the unit
// has not entered, or whose last hook is done.
func findRelationID(relations map[int]state.RelationState, word string) (int, error) {
	var found []int
	for id, r := range relations {
		isEntered := r.State == state.RelationUp || r.State == state.RelationError
		if isEntered && isNamed(word, id, r.Name) {
			found = append(found, id)
		}
	}

	switch len(found) {
	case 0:
		return 0, fmt.Errorf("relation %q not found", word)
	case 1:
		return found[0], nil
	}

	slices.Sort(found)
	var ids []string
	for _, id := range found {
		ids = append(ids, strconv.Itoa(id))
	}
	return 0, fmt.Errorf("relation %q is ambiguous: want one of %s", word, strings.Join(ids, ", "))
}

// isNamed reports whether the word is the relation's id in any form, or its name in the unit's charm.
func isNamed(word string, id int, name string) bool {
	number := strconv.Itoa(id)
	return slices.Contains([]string{number, "relation-" + number, name + ":" + number, name}, word)
}

// chooseRemote returns the remote unit of a command. If the command does not name a unit, it returns the
// relation's only remote unit, as Juju does. With Force, a named unit does not have to be in the relation. If
// the command names no unit and the relation has none, Force makes chooseRemote return an empty string
// instead of an error.
func chooseRemote(members map[string]state.MemberState, c server.Command) (string, error) {
	var units []string // the remote units that are in the relation
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if members[name].State == hook.In && hook.IsUnit(name) {
			units = append(units, name)
		}
	}
	charm.SortUnits(units)

	if c.RemoteUnit != "" {
		if !c.Force && !slices.Contains(units, c.RemoteUnit) {
			return "", fmt.Errorf("unit %q is not in relation %q", c.RemoteUnit, c.Relation)
		}
		return c.RemoteUnit, nil
	}

	switch {
	case len(units) == 1:
		return units[0], nil
	case len(units) == 0 && c.Force:
		return "", nil
	case len(units) == 0:
		return "", fmt.Errorf("no remote unit is in relation %q", c.Relation)
	}

	return "", fmt.Errorf("cannot choose a remote unit in relation %q: want one of %s", c.Relation, strings.Join(units, ", "))
}

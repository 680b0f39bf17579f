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

// outside has the unit do what programs outside of hooks ask for. It touches nothing that the unit's
// loop owns: commands go through the queue of actions, as those of operators.
type outside struct{ Options }

// Identify implements [server.Outside].
func (o outside) Identify() server.Identity {
	return server.Identity{Unit: o.Unit, Environment: o.Environment.Name, UUID: o.Environment.UUID}
}

// Enqueue implements [server.Outside].
func (o outside) Enqueue(ctx context.Context, c server.Command) (id int, err error) {
	if c.Line == "" {
		return 0, errors.New("no command given")
	}
	if c.Relation == "" && c.RemoteUnit+c.RemoteService != "" {
		return 0, errors.New("a remote unit or application needs a relation")
	}

	err = o.Update(ctx, func(tx *state.Tx) error {
		a := actions.Action{Unit: o.Unit, Command: []string{c.Line}}
		if c.Relation != "" {
			records, err := tx.Uniter(o.Unit)
			if err == nil {
				a.Relation, err = findRelation(records, c)
			}
			if err != nil {
				return err
			}
		}

		added, err := actions.Add(tx, a, now())
		id = added.ID
		return err
	})
	if err != nil {
		return id, err
	}

	o.Log.Info("a program of this machine has the unit run a command", "id", id)
	return id, nil
}

// Await implements [server.Outside]. It outlasts a store that is away.
func (o outside) Await(ctx context.Context, id int) (end server.CommandEnd, ok bool, err error) {
	for ctx.Err() == nil {
		var a actions.Action
		var output actions.Output
		var revision int64
		err := o.State.View(ctx, func(v *state.View) (err error) {
			if a, err = o.readCommand(v, id); err != nil {
				return err
			}
			if output, err = actions.ReadOutput(v, a); err != nil {
				return err
			}
			revision, err = v.Revision()
			return err
		})

		switch {
		case errors.Is(err, state.ErrAway):
			_ = backoff.Sleep(ctx, time.Second)
			continue
		case ctx.Err() != nil:
			return end, false, nil
		case err != nil:
			return end, false, err
		case a.Ended():
			return commandEnd(a, output), true, nil
		}

		_ = o.State.Await(ctx, revision, actions.Watch(id)) // a watch that fails is begun again
	}

	return end, false, nil
}

// readCommand returns a command by its id. It returns an error for the commands of other units, and for
// actions.
func (o outside) readCommand(v *state.View, id int) (actions.Action, error) {
	a, err := actions.Get(v, id)
	if err == nil && (a.Unit != o.Unit || !a.IsCommand()) {
		err = fmt.Errorf("%d is not a command of unit %q", id, o.Unit)
	}
	return a, err
}

func commandEnd(a actions.Action, output actions.Output) server.CommandEnd {
	end := server.CommandEnd{Stdout: output.Stdout, Stderr: output.Stderr, Dropped: output.Dropped}
	if a.Code != nil {
		end.Exit = *a.Code
	}

	// A code of 0 is no success where what the command has set could not be written.
	if a.Status != actions.Completed && end.Exit == 0 {
		end.Exit = 1
		end.Problem = cmp.Or(a.Message, "it is "+string(a.Status))
	}
	return end
}

// findRelation returns the relation in which a command runs, and its remote unit. It returns an error if
// the name fits no relation of the unit, or several.
func findRelation(records state.Uniter, c server.Command) (*actions.Relation, error) {
	var found []int
	for id, r := range records.Relations {
		if (r.State == state.RelationUp || r.State == state.RelationError) && isNamed(c.Relation, id, r.Name) {
			found = append(found, id)
		}
	}

	slices.Sort(found)
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("relation %q not found", c.Relation)
	case 1:
		// The only one, below.
	default:
		return nil, fmt.Errorf("%q stands for several relations: give an id, one of %s", c.Relation,
			strings.Trim(fmt.Sprint(found), "[]"))
	}

	r := records.Relations[found[0]]
	if c.RemoteService != "" && c.RemoteService != r.RemoteService {
		return nil, fmt.Errorf("application %q is not at the other end of relation %q: %q is",
			c.RemoteService, c.Relation, r.RemoteService)
	}

	remote, err := chooseRemote(records.Members[found[0]], c)
	if err != nil {
		return nil, err
	}
	return &actions.Relation{
		ID: found[0], Name: r.Name, RemoteUnit: remote, RemoteService: r.RemoteService,
	}, nil
}

// isNamed reports whether the word names the relation: by its id in any form, or by its name in the unit's
// charm.
func isNamed(word string, id int, name string) bool {
	number := strconv.Itoa(id)
	return slices.Contains([]string{number, "relation-" + number, name + ":" + number, name}, word)
}

// chooseRemote returns the remote unit of a command. As in Juju it is the relation's only member if the
// command names none. With Force the relation may be empty, and the named unit may have left it.
func chooseRemote(members map[string]state.MemberState, c server.Command) (string, error) {
	var in []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if members[name].State == hook.In && hook.IsUnit(name) {
			in = append(in, name)
		}
	}
	charm.SortUnits(in)

	switch {
	case c.RemoteUnit != "" && (c.Force || slices.Contains(in, c.RemoteUnit)):
		return c.RemoteUnit, nil
	case c.RemoteUnit != "":
		return "", fmt.Errorf("unit %q is not in relation %q", c.RemoteUnit, c.Relation)
	case len(in) == 1:
		return in[0], nil
	case len(in) == 0 && c.Force:
		return "", nil
	case len(in) == 0:
		return "", fmt.Errorf("no remote unit is in relation %q", c.Relation)
	}

	return "", fmt.Errorf("ambiguous remote unit in relation %q: give one of %s", c.Relation, strings.Join(in, ", "))
}

package do

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bijou/agent/hookctx"
	"bijou/agent/hookexec"
	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/unitdir"
)

// buildEnv returns the command's environment variables: those of the operator and those of a hook. It leaves
// out the variables of an outer hook. It logs a warning if the relation has too many members for JUJU_MEMBERS.
func (r *run) buildEnv(d workDir, client string) []string {
	inherited := map[string]string{}
	var env []string
	for _, pair := range r.Environ {
		name, value, _ := strings.Cut(pair, "=")
		inherited[name] = value
		if !isHookVariable(name) && name != "PATH" {
			env = append(env, pair)
		}
	}

	facts := r.envFacts(d, client)
	if warning := facts.Relation.TooManyMembers(); warning != "" { // no warning if Relation is nil
		r.logs.write(r.Unit, "WARNING", warning)
	}

	// Of a hook's environment, add only PATH and the variables that belong to a hook. For all other
	// variables, the command gets the operator's values. Leave out empty variables, except the one that marks a
	// principal unit by its empty value.
	for _, pair := range hookexec.Environment(facts, func(name string) string { return inherited[name] }) {
		name, value, _ := strings.Cut(pair, "=")
		fromHook := isHookVariable(name) || name == "PATH"
		hasMeaning := value != "" || name == "JUJU_PRINCIPAL_UNIT" && r.Unit != ""
		if fromHook && hasMeaning {
			env = append(env, pair)
		}
	}

	// The start file of bash adds the unit to the prompt. For other shells, PS1 does.
	if r.Command == nil && filepath.Base(r.Shell) != "bash" {
		env = append(env, fmt.Sprintf("PS1=(%s) $ ", r.Unit))
	}
	return env
}

// isHookVariable reports whether a variable belongs to a hook. JUJU_ENV and JUJU_STATE do not belong to a
// hook, since the operator sets them to choose an environment.
func isHookVariable(name string) bool {
	switch name {
	case "JUJU_ENV", "JUJU_STATE":
		return false
	case "CHARM_DIR":
		return true
	}

	return strings.HasPrefix(name, "JUJU_")
}

// envFacts returns the facts from which the command's environment variables are built, as for a hook.
func (r *run) envFacts(d workDir, client string) hookexec.Facts {
	f := r.facts
	execFacts := hookexec.Facts{
		Unit:        f.unit.Name,
		Service:     f.unit.Service,
		Charm:       f.charmName,
		Hook:        hookName,
		Machine:     f.unit.Machine,
		Principal:   f.unit.Principal,
		Tools:       d.toolsPath(),
		Socket:      d.socketPath(),
		ClientID:    client,
		Environment: f.env.Name,
		UUID:        f.env.UUID,
		Version:     f.version,
		Proxies:     hookexec.Proxies(f.env.CharmProxies()),
	}

	if folder := r.unitFolder(); folder != "" {
		execFacts.UnitDir = string(folder)
		execFacts.CharmDir = folder.Charm()
	}
	if f.apiFacts.Relation != hookapi.NoRelation {
		execFacts.Relation = &hookexec.RelationFacts{
			Name:          f.relationName,
			ID:            r.relationID(),
			RemoteUnit:    f.apiFacts.RemoteUnit,
			RemoteService: f.apiFacts.RemoteService,
			Members:       f.apiFacts.Members,
		}
	}

	return execFacts
}

// relationID returns the id of the hook's relation, in the form that the dialect uses.
func (r *run) relationID() string {
	if r.Dialect == hookapi.Modern && r.facts.relationName != "" {
		return fmt.Sprintf("%s:%d", r.facts.relationName, r.facts.apiFacts.Relation)
	}
	return fmt.Sprintf("relation-%d", r.facts.apiFacts.Relation)
}

// unitFolder returns the unit's directory, or "" if no charm is deployed for the unit on this host.
func (r *run) unitFolder() unitdir.Folder {
	if r.Unit == "" || r.MachineDir == nil {
		return ""
	}

	folder := unitdir.Of(r.MachineDir(r.facts.unit.Machine), r.Unit)
	// An agent with an older binary uses the legacy directory.
	for _, f := range []unitdir.Folder{folder, folder.Legacy()} {
		if _, err := os.Stat(f.Charm()); err == nil {
			return f
		}
	}

	return ""
}

// hookName is the name of the command's hook, in logs and in the command's variables.
const hookName = "juju-do"

// hookFacts are the facts of the command's hook. They do not change while the command runs.
type hookFacts struct {
	env          state.Environment
	unit         state.Unit // zero without a unit
	charmName    string     // the name of the unit's charm
	version      string     // the version of Juju that the command sees
	apiFacts     hookapi.Facts
	relationName string // the name of the hook's relation in the unit's charm
}

// gatherFacts reads everything that the command needs from the state.
func (r *run) gatherFacts(ctx context.Context) error {
	id, err := r.parseRelation()
	if err != nil {
		return err
	}

	return r.State.View(ctx, func(v *state.View) (err error) {
		if err := r.gatherUnit(v); err != nil {
			return err
		}
		if r.facts.env, err = v.Environment(); err != nil {
			return err
		}

		r.facts.apiFacts = hookapi.Facts{
			Unit:     r.Unit,
			Operator: true,
			Service:  r.facts.unit.Service,
			Charm:    r.facts.charmName,
			Model:    r.facts.env.UUID,
			Hook:     hookName,
			Dialect:  r.Dialect,
			Relation: id,
		}

		if id == hookapi.NoRelation {
			return nil
		}

		return r.facts.readRelation(v, id)
	})
}

// gatherUnit reads the unit for which the command runs as a hook, if any. It chooses the dialect unless the
// options set one. If no unit is set and the command is only the name of an existing unit, it sets Unit to that
// name and Command to nil, which stands for a shell.
func (r *run) gatherUnit(v *state.View) error {
	if r.Unit == "" && len(r.Command) == 1 && charm.IsUnit(r.Command[0]) {
		_, err := v.Unit(r.Command[0])
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
		if err == nil {
			r.Unit = r.Command[0]
			r.Command = nil
		}
	}

	dialect := charm.Classic
	r.facts.version = charm.JujuVersion
	if r.Unit != "" {
		var err error
		if dialect, err = r.facts.readUnit(v, r.Unit); err != nil {
			return err
		}
	}

	if r.Dialect == "" {
		r.Dialect = hookapi.Dialect(dialect)
	}
	return nil
}

// readUnit reads the unit and its charm, and returns the dialect of the charm's hook tools.
func (f *hookFacts) readUnit(v *state.View, unit string) (d charm.Dialect, err error) {
	if f.unit, err = v.Unit(unit); err != nil {
		return "", err
	}

	s, err := v.Service(f.unit.Service)
	if err != nil {
		return "", err
	}
	// A unit has no charm until its agent has deployed one. Until then, read the service's charm.
	c, err := v.Charm(cmp.Or(f.unit.Charm, s.Charm))
	if err != nil {
		return "", err
	}

	f.charmName = c.Meta.Name
	f.version = s.PromisedVersion()
	return s.DialectOf(c), nil
}

// readRelation reads the relation in which the command runs, and its members. If there is only one remote
// member, that member becomes the hook's remote unit. Without a unit, all units of the relation count as
// members. readRelation returns an error if the command's unit is not in the relation.
func (f *hookFacts) readRelation(v *state.View, id int) error {
	r, err := v.Relation(id)
	if err != nil {
		return err
	}
	members, err := v.Members(id)
	if err != nil {
		return err
	}

	if f.unit.Name == "" {
		for _, m := range members {
			f.apiFacts.Members = append(f.apiFacts.Members, m.Unit)
		}
		return nil
	}

	end, ok := r.Endpoint(f.unit.Service)
	if !ok {
		return fmt.Errorf("unit %q is not part of %s, which is between %v", f.unit.Name, r, r.Endpoints)
	}
	own := slices.IndexFunc(members, func(m state.Member) bool { return m.Unit == f.unit.Name })
	if own < 0 {
		return fmt.Errorf("unit %q is not in %s: the unit has not yet joined the relation, or has left it", f.unit.Name, r)
	}

	f.relationName = end.Name
	f.apiFacts.RemoteService = r.Other(f.unit.Service).Service
	for _, m := range members {
		service, _, _ := charm.ParseUnit(m.Unit) // never fails: names in the store are valid
		isRemote := service == f.apiFacts.RemoteService && m.Unit != f.unit.Name
		// In container scope, a unit sees only the members that have the same principal.
		isInScope := r.Scope != charm.Container || m.Principal == members[own].Principal
		if isRemote && isInScope {
			f.apiFacts.Members = append(f.apiFacts.Members, m.Unit)
		}
	}

	if len(f.apiFacts.Members) == 1 {
		f.apiFacts.RemoteUnit = f.apiFacts.Members[0]
	}
	return nil
}

// contextOptions returns the options for the context that answers the command's tools.
func (r *run) contextOptions() hookctx.Options {
	return hookctx.Options{
		State:        r.State,
		Update:       r.State.Update,
		Facts:        r.facts.apiFacts,
		RelationName: r.facts.relationName,
		CharmURL:     r.facts.unit.Charm,
		SecretKeys:   r.SecretKeys,
		Log:          func(level, message string) { r.logs.write(r.Unit, level, message) },
	}
}

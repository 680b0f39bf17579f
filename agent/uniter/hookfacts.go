package uniter

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bijou/agent/hook"
	"bijou/agent/hookctx"
	"bijou/agent/hookexec"
	"bijou/agent/uniter/decide"
	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/charm"
	"bijou/state/secret"
)

// hookFacts are known before a hook starts, and do not change while it runs.
type hookFacts struct {
	hook      state.Hook
	unit      state.Unit
	env       state.Environment
	charmName string
	version   string // of Juju, as the service promises it
	dialect   charm.Dialect
	members   []string
	departing string
	action    *actions.Action // nil in hooks
	debug     *hookexec.Debug // nil unless an operator runs the hook by hand
	holder    string          // the operator who does

	storage     state.Storage // that the hook is about
	secretLabel string        // by which the unit knows the secret that the hook is about
}

// gatherFacts collects from the snapshot everything that the hook, its tools and its environment variables
// need. It returns an error if the snapshot lacks the unit's charm.
func gatherFacts(h state.Hook, snap decide.Snapshot) (hookFacts, error) {
	f := hookFacts{
		hook:      h,
		unit:      snap.Unit,
		env:       snap.Environment,
		charmName: snap.Hooks.Name,
		dialect:   snap.Hooks.Dialect,
		version:   snap.JujuVersion,
	}

	if h.Kind == hook.Departed {
		f.departing = h.RemoteUnit
		if snap.Unit.Life != state.Alive {
			f.departing = snap.Unit.Name
		}
	}

	if hook.IsAction(h) {
		f.action = snap.Action
		f.hook = withRelation(h, snap.Action)
	}
	f.members = hookMembers(snap, f.hook)
	f.secretLabel = snap.Secrets.LabelFor(h.Secret, snap.Unit.Name)
	for _, s := range snap.Storages {
		if s.ID == h.Storage {
			f.storage = s
		}
	}

	f.debug, f.holder = debugSession(snap.Debug, h)
	if snap.Hooks.Charm != snap.Unit.Charm {
		return f, fmt.Errorf("cannot prepare hook %q: charm %q is not in the store", h.Name, snap.Unit.Charm)
	}

	return f, nil
}

// withRelation returns the hook of a command with the relation in which the command runs, if it has one.
// Only the process sees that relation. The operation in flight is recorded without it, so that a failed
// command puts no relation into an error state.
func withRelation(h state.Hook, a *actions.Action) state.Hook {
	if a == nil || a.Relation == nil {
		return h
	}

	h.Relation = a.Relation.ID
	h.RelationName = a.Relation.Name
	h.RemoteUnit = a.Relation.RemoteUnit
	h.RemoteService = a.Relation.RemoteService
	return h
}

// hookMembers returns the members after the change that the hook is about: with the unit
// that joins, without the one that departs, none in broken.
func hookMembers(snap decide.Snapshot, h state.Hook) []string {
	recorded := snap.Uniter.Members[h.Relation]
	names := make([]string, 0, len(recorded))
	known := 0

	addMember := func(name string, is state.MemberState) {
		isIn := is.State == hook.In
		if name == h.RemoteUnit {
			isIn = h.Kind == hook.Joined || isIn && h.Kind != hook.Departed
		}
		if isIn && hook.IsUnit(name) {
			names = append(names, name)
		}
	}

	for _, m := range snap.Relations[h.Relation].Members { // sorted
		if is, ok := recorded[m.Unit]; ok {
			known++
			addMember(m.Unit, is)
		}
	}

	if known < len(recorded) { // some have gone, and their departed is owed
		names = names[:0]
		for name, is := range recorded {
			addMember(name, is)
		}
		charm.SortUnits(names)
	}

	return names
}

// newContext returns the context that answers the hook's tools. Lines that the hook logs go to the unit's
// log; logged keeps the last error among them.
func (u *uniter) newContext(f hookFacts, logged *lastError) *hookctx.Context {
	h := f.hook
	log := func(level, message string) {
		logged.note(level, message)
		u.output.Write(level, h.Name, message)
	}

	return hookctx.New(hookctx.Options{
		State:        u.State,
		Update:       u.rawUpdate,
		RelationName: h.RelationName,
		CharmURL:     f.unit.Charm,
		Log:          log,
		Facts: hookapi.Facts{
			Unit:          f.unit.Name,
			Service:       f.unit.Service,
			Charm:         f.charmName,
			Model:         f.env.UUID,
			Hook:          h.Name,
			Dialect:       hookapi.Dialect(f.dialect),
			Relation:      h.Relation,
			RemoteUnit:    h.RemoteUnit,
			RemoteService: h.RemoteService,
			Broken:        h.Kind == hook.Broken,
			Departing:     f.departing,
			Members:       f.members,
			Storage:       h.Storage,
		},
		Action:     actionFacts(f.action),
		Resources:  u.Folder.Path("resources"),
		SecretKeys: u.SecretKeys,
	})
}

// envFacts returns the facts from which [hookexec.Environment] makes the hook's environment variables.
// client is the id by which its tools name the hook.
func (f hookFacts) envFacts(u *uniter, client string) hookexec.Facts {
	h := f.hook

	facts := hookexec.Facts{
		Unit:        f.unit.Name,
		Service:     f.unit.Service,
		Charm:       f.charmName,
		Hook:        h.Name,
		Machine:     f.unit.Machine,
		Principal:   f.unit.Principal,
		UnitDir:     string(u.Folder),
		CharmDir:    u.Folder.Charm(),
		Tools:       u.Folder.ToolsPath(),
		Socket:      u.server.Path(),
		ClientID:    client,
		Environment: f.env.Name,
		UUID:        f.env.UUID,
		Version:     f.version,
		Proxies: hookexec.Proxies{
			HTTP:  f.env.Config[state.CharmHTTPProxy],
			HTTPS: f.env.Config[state.CharmHTTPSProxy],
			FTP:   f.env.Config[state.CharmFTPProxy],
			None:  f.env.Config[state.CharmNoProxy],
		},
	}

	if f.action != nil {
		facts.Action = &hookexec.ActionFacts{Name: f.action.Name, ID: strconv.Itoa(f.action.ID)}
	}
	if h.Secret != "" {
		facts.Secret = &hookexec.SecretFacts{ID: secret.Scheme + h.Secret, Label: f.secretLabel}
		if h.Kind == hook.SecretExpired || h.Kind == hook.SecretRemove {
			facts.Secret.Revision = h.SecretRevision
		}
	}

	if h.Storage != "" {
		facts.Storage = &hookexec.StorageFacts{ID: h.Storage, Location: f.storage.Location}
	}
	if h.Relation != state.NoRelation {
		facts.Relation = &hookexec.RelationFacts{
			Name:          h.RelationName,
			ID:            relationID(h, f.dialect),
			RemoteUnit:    h.RemoteUnit,
			RemoteService: h.RemoteService,
			Members:       f.members,
			Departing:     f.departing,
		}
	}

	return facts
}

func relationID(h state.Hook, d charm.Dialect) string {
	if d == charm.Modern {
		return fmt.Sprintf("%s:%d", h.RelationName, h.Relation)
	}
	return fmt.Sprintf("relation-%d", h.Relation)
}

func (f hookFacts) logAttrs() []any {
	attrs := []any{"hook", f.hook.Name}
	if f.hook.Relation != state.NoRelation {
		attrs = append(attrs, "relation", f.hook.Relation, "members", len(f.members))
	}
	return attrs
}

// debugSession returns the operator's debug session that the hook runs in; nil if there is none.
func debugSession(d *actions.Debug, h state.Hook) (session *hookexec.Debug, holder string) {
	if d == nil || hook.IsAction(h) {
		return nil, ""
	}

	wanted, named := d.Wants(h.Name)
	if !wanted {
		return nil, ""
	}

	return &hookexec.Debug{Socket: d.Socket, Always: named, Owner: d.Owner}, d.String()
}

// isOperators reports whether a debug session's folder is still its operator's. Once it is gone
// another user can make one of that name in /tmp, with a tmux that would get the hooks.
func isOperators(d hookexec.Debug) bool {
	if d.Owner == nil {
		return true // an older binary's
	}
	info, err := os.Lstat(filepath.Dir(d.Socket))
	if err != nil {
		return false
	}

	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(stat.Uid) == *d.Owner
}

// endStaleDebug drops the debug session of an operator whose command was killed, so that the hook runs
// without it.
func (u *uniter) endStaleDebug(ctx context.Context, f *hookFacts) {
	d := f.debug
	if d == nil {
		return
	}

	ask, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if isOperators(*d) && exec.CommandContext(ask, "tmux", "-S", d.Socket, "has-session", "-t", actions.DebugSession).Run() == nil {
		return
	}

	f.debug = nil
	f.holder = ""
	u.Log.Info("the debug session is over", "socket", d.Socket)
	if dir := filepath.Dir(d.Socket); isOperators(*d) && strings.HasPrefix(filepath.Base(dir), "bijou-debug-") {
		_ = os.RemoveAll(dir) // which its operator may have done already
	}
	err := u.commitStep(ctx, "debug-end", func(tx *state.Tx) error { return actions.ClearDebug(tx, u.Unit, d.Socket) })
	if err != nil {
		u.Log.Debug("cannot forget the debug session", "error", err)
	}
}

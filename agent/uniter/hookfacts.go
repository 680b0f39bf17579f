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

// hookFacts describes a hook before it starts. The facts do not change while the hook runs.
type hookFacts struct {
	hook      state.Hook
	unit      state.Unit
	env       state.Environment
	charmName string
	version   string // the version of Juju that the hook sees
	dialect   charm.Dialect
	members   []string        // see hookMembers
	departing string          // the departing unit in a -departed hook
	action    *actions.Action // nil in hooks
	debug     *hookexec.Debug // the session in which an operator runs the hook by hand, if any
	holder    string          // names the operator of that session

	storage     state.Storage // the storage that the hook concerns
	secretLabel string        // the unit's label for the secret that the hook concerns
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

	// A dying unit itself leaves the relation, although each of its departed hooks names a remote unit.
	if h.Kind == hook.Departed {
		f.departing = h.RemoteUnit
		if snap.Unit.Life != state.Alive {
			f.departing = snap.Unit.Name
		}
	}
	if hook.IsAction(h) {
		f.action = snap.Action
		f.hook = withRelation(h, snap.Action) // a command can run in a relation
	}

	f.members = hookMembers(snap, f.hook)
	f.secretLabel = snap.Secrets.LabelFor(h.Secret, snap.Unit.Name)
	for _, s := range snap.Storages {
		if s.ID == h.Storage {
			f.storage = s
		}
	}

	f.debug, f.holder = debugSession(snap.Debug, h)
	if snap.Hooks.Charm != snap.Unit.Charm { // the store does not contain the charm
		return f, fmt.Errorf("cannot prepare hook %q: charm %q does not exist in the model", h.Name, snap.Unit.Charm)
	}

	return f, nil
}

// withRelation returns h, the hook of a command, with the relation in which the command runs. If the command runs
// in no relation, it returns h unchanged. Only the command's process sees that relation. The operation in flight is
// recorded without the relation, so that a failed command does not put the relation into an error state.
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

// hookMembers returns the remote units of the hook's relation, sorted. These are the members according to the
// hooks that the unit has begun, including h: a unit that joins is included, and a unit that departs is excluded.
// A broken hook, and a hook without a relation, have no members.
func hookMembers(snap decide.Snapshot, h state.Hook) []string {
	recorded := snap.Uniter.Members[h.Relation]
	names := make([]string, 0, len(recorded))

	addIfIn := func(name string, m state.MemberState) {
		isIn := m.State == hook.In
		if name == h.RemoteUnit && h.Kind == hook.Joined {
			isIn = true
		}
		if name == h.RemoteUnit && h.Kind == hook.Departed {
			isIn = false
		}
		if isIn && hook.IsUnit(name) {
			names = append(names, name)
		}
	}

	// The snapshot's members are sorted. So the names need no sorting if the snapshot has all recorded members.
	found := 0
	for _, present := range snap.Relations[h.Relation].Members {
		if m, ok := recorded[present.Unit]; ok {
			found++
			addIfIn(present.Unit, m)
		}
	}
	if found >= len(recorded) {
		return names
	}

	// Some recorded members are no longer in the snapshot, but their departed hooks have not run yet.
	names = names[:0]
	for name, m := range recorded {
		addIfIn(name, m)
	}
	charm.SortUnits(names)
	return names
}

// newContext returns the context that answers the hook's tools. The context writes the lines that the hook logs to
// the unit's log, and keeps the last error among these lines in logged.
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

// envFacts returns the facts from which [hookexec.Environment] builds the hook's environment variables.
// client is the id under which the hook's tools reach the hook's context.
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
		Proxies:     hookexec.Proxies(f.env.CharmProxies()),
	}

	if f.action != nil {
		facts.Action = &hookexec.ActionFacts{Name: f.action.Name, ID: strconv.Itoa(f.action.ID)}
	}
	if h.Secret != "" {
		facts.Secret = &hookexec.SecretFacts{ID: secret.Scheme + h.Secret, Label: f.secretLabel}
		if h.Kind == hook.SecretExpired || h.Kind == hook.SecretRemove { // the others concern the whole secret
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

// relationID returns the id of the hook's relation in the form of the dialect.
func relationID(h state.Hook, d charm.Dialect) string {
	if d == charm.Modern {
		return fmt.Sprintf("%s:%d", h.RelationName, h.Relation)
	}
	return fmt.Sprintf("relation-%d", h.Relation)
}

// logAttrs returns the attributes that describe the hook in the agent's log.
func (f hookFacts) logAttrs() []any {
	attrs := []any{"hook", f.hook.Name}
	if f.hook.Relation != state.NoRelation {
		attrs = append(attrs, "relation", f.hook.Relation, "members", len(f.members))
	}
	return attrs
}

// debugSession returns the operator's debug session in which the hook runs, and a text that names the operator and
// the command that attaches to the session. It returns nil if there is no such session, and for actions.
func debugSession(d *actions.Debug, h state.Hook) (session *hookexec.Debug, holder string) {
	if d == nil || hook.IsAction(h) {
		return nil, ""
	}

	wanted, named := d.Wants(h.Name)
	if !wanted {
		return nil, ""
	}

	// If the operator has named the hook, the session opens even if the charm does not have the hook.
	return &hookexec.Debug{Socket: d.Socket, Always: named, Owner: d.Owner}, d.String()
}

// belongsToOperator reports whether the directory of a debug session still belongs to the session's operator. If
// the directory was removed, another user could create a directory with the same name in /tmp. Without this
// check, that user's tmux would then run the hooks.
func belongsToOperator(d hookexec.Debug) bool {
	if d.Owner == nil {
		return true // an older binary has recorded no owner
	}
	info, err := os.Lstat(filepath.Dir(d.Socket))
	if err != nil {
		return false
	}

	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(stat.Uid) == *d.Owner
}

// endStaleDebug ends the debug session of f if its tmux no longer runs, for example because the operator's command
// was killed, or if the operator no longer owns the session's directory. It then removes the session from f, so
// that the hook runs without the session. It also tries to remove the session's record, and the session's directory
// if the operator owns it and juju debug-hooks has created it. If f has no session, or if the session still runs in
// a directory that the operator owns, endStaleDebug does nothing.
func (u *uniter) endStaleDebug(ctx context.Context, f *hookFacts) {
	d := f.debug
	if d == nil {
		return
	}

	tmuxCtx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	hasSession := exec.CommandContext(tmuxCtx, "tmux", "-S", d.Socket, "has-session", "-t", actions.DebugSession)
	if belongsToOperator(*d) && hasSession.Run() == nil {
		return
	}

	f.debug = nil
	f.holder = ""
	u.Log.Info("the debug session has ended", "socket", d.Socket)

	// Another user can own the directory now, or it may not be one that juju debug-hooks has created.
	dir := filepath.Dir(d.Socket)
	if belongsToOperator(*d) && strings.HasPrefix(filepath.Base(dir), "bijou-debug-") {
		_ = os.RemoveAll(dir) // the hook can run even if the directory stays
	}
	err := u.commitStep(ctx, "debug-end", func(tx *state.Tx) error { return actions.ClearDebug(tx, u.Unit, d.Socket) })
	if err != nil {
		u.Log.Debug("cannot remove the record of the debug session", "error", err)
	}
}

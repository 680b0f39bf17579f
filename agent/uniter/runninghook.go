package uniter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"bijou/agent/hook"
	"bijou/agent/hookctx"
	"bijou/agent/hookexec"
	"bijou/agent/uniter/decide"
	"bijou/hookenv/server"
	"bijou/state"
	"bijou/state/actions"
)

// maxStderr bounds the line of a hook's stderr, or of what it has logged, that its status shows, in bytes.
const maxStderr = 500

// runningHook is the hook in flight.
type runningHook struct {
	op     state.Op
	facts  hookFacts
	from   decide.Cause
	queued []hook.Arrival    // to be queued as it begins
	entry  state.MemberState // of the queue, that it is taken from
	ctx    *hookctx.Context

	output     actionOutput // of an action or a command
	lastStderr string       // the last line with a letter on stderr, at most maxStderr bytes
	lastLogged lastError    // the last line that it has logged as an error
	endReason  string       // why the hook was told to end, or killed; empty: it was not

	interrupt context.CancelFunc // tells the process group to end
	kill      context.CancelFunc // kills the process group
	done      chan struct{}      // closed after outcome was set
	outcome   hookexec.Outcome
	endedAt   time.Time // of the process
}

func (r *runningHook) hasEnded() bool { return isClosed(r.done) }

// beginHook commits that the hook begins, and then starts it. So a hook that ran is always recorded.
func (u *uniter) beginHook(ctx context.Context, s decide.RunHook, snap decide.Snapshot) error {
	facts, err := gatherFacts(s.Hook, snap)
	if err != nil {
		return err
	}
	if err := u.checkSocket(); err != nil {
		return err
	}

	u.endStaleDebug(ctx, &facts)
	r := u.newRunningHook(s, snap, facts)
	if err := u.commitStep(ctx, "begin", func(tx *state.Tx) error {
		return r.recordBegin(tx,
			u.Unit)
	}); err != nil {
		if s.From == decide.FromOperator && errors.Is(err, state.ErrNotFound) {
			return nil // it was cancelled meanwhile
		}
		return err
	}

	if s.From == decide.FromCrash {
		u.logUnrecordedEnd(*snap.Uniter.Op)
	}
	u.logLeftOver(s, snap)
	u.spawn(ctx, r)
	return nil
}

// logLeftOver warns of processes that the last attempt of this hook has left running. It does not end them:
// a process in a session of its own may be a daemon that the charm keeps.
func (u *uniter) logLeftOver(s decide.RunHook, snap decide.Snapshot) {
	left := hookexec.LeftOver(previousClient(s, snap))
	if len(left) > 0 {
		u.output.Write("WARNING", s.Hook.Name, fmt.Sprintf("hook %q runs again beside processes that its last attempt left running: %s",
			s.Hook.Name, strings.Join(left, ", ")))
	}
}

// previousClient returns the client id of the attempt before; "" if there was none.
func previousClient(s decide.RunHook, snap decide.Snapshot) string {
	f := snap.Uniter.Workflow.Failure
	if s.Hook.Relation != state.NoRelation {
		f = snap.Uniter.Relations[s.Hook.Relation].Failure
	}

	switch {
	case s.From == decide.FromCrash:
		return snap.Uniter.Op.ClientID
	case s.From == decide.FromFailure && f != nil:
		return f.ClientID
	}
	return ""
}

// checkSocket makes the unit's socket again if it was removed, as programs that clear temporary directories
// do. If another user has taken the directory's name since then, the socket moves to a different path. It
// does not move while a hook runs, since the hook knows the path: checkSocket returns an error then.
func (u *uniter) checkSocket() error {
	path, err := u.Socket()
	if err != nil {
		return err
	}
	if path == u.server.Path() {
		return u.server.Renew()
	}
	if u.running != nil {
		return fmt.Errorf("cannot move the socket to %q: a hook runs", path)
	}

	next, err := server.ListenFor(path, outside{u.Options})
	if err != nil {
		return err
	}

	u.Log.Info("the socket moves", "from", u.server.Path(), "to", path)
	_ = u.server.Close() // what lies at its path is not ours any more
	u.server = next
	return nil
}

// newRunningHook returns the hook with its context and the operation to record.
func (u *uniter) newRunningHook(s decide.RunHook, snap decide.Snapshot, facts hookFacts) *runningHook {
	r := &runningHook{facts: facts, from: s.From, queued: snap.Queued, done: make(chan struct{})}
	r.ctx = u.newContext(facts, &r.lastLogged)
	r.entry = snap.Uniter.Members[s.Hook.Relation][hook.Member(s.Hook)]
	r.op = state.Op{
		ID:       server.NewClientID(),
		Hook:     s.Hook,
		ClientID: server.NewClientID(),
		Started:  now(),
		Holder:   facts.holder,
		Expect:   decide.StateAfter(s.Hook, snap.Uniter.Workflow),
		Version:  subjectVersion(snap, s.Hook),
	}
	return r
}

// spawn starts a hook that is recorded as in flight.
func (u *uniter) spawn(ctx context.Context, r *runningHook) {
	u.server.Register(r.op.ClientID, r.ctx)
	u.faultPoint("before-spawn")
	u.Log.Info("hook starts", r.facts.logAttrs()...)
	u.startProcess(ctx, r)
	u.running = r
	u.hooksInTurn++
}

// recordBegin records in tx that the hook begins. A hook of the queue is taken out of it, an action is
// marked as started, and a retry uses up the operator's answer.
func (r *runningHook) recordBegin(tx *state.Tx, unit string) error {
	h := r.op.Hook
	if r.from == decide.FromQueue && h.Kind != hook.Broken && len(r.queued) == 0 {
		if err := tx.PrefetchMembers(unit, map[int][]string{h.Relation: {hook.Member(h)}}); err != nil {
			return err
		}
	}

	if err := recordArrivals(tx, unit, r.queued); err != nil {
		return err
	}

	if r.from == decide.FromOperator {
		if err := actions.Start(tx, h.Action, r.op.ID, now()); err != nil {
			return err
		}
	}

	if r.from == decide.FromFailure {
		if err := takeRetry(tx, unit, h.Relation); err != nil {
			return err
		}
	}

	if r.from == decide.FromQueue && h.Kind != hook.Broken {
		m := hook.Take(r.entry)
		m.Version = max(m.Version, r.op.Version)
		if err := tx.RewriteMember(unit, h.Relation, hook.Member(h), m); err != nil {
			return err
		}
	}

	return tx.PutOp(unit, r.op)
}

// takeRetry clears the operator's answer that a failed hook must be retried, and starts its backoff from
// the beginning. It keeps the answer that the hook counts as done: that one came too late for this run, and
// applies if the hook fails once more.
func takeRetry(tx *state.Tx, unit string, relation int) error {
	if err := tx.PrefetchHook(unit, relation, ""); err != nil {
		return err
	}
	record, err := tx.Unit(unit)
	if err != nil {
		return err
	}

	answer := record.ResolvedRelations[relation]
	forget := forgetRelationBackoff
	if relation == state.NoRelation {
		answer = record.Resolved
		forget = forgetUnitBackoff
	}
	if answer != state.ResolvedRetry {
		return nil
	}
	if err := forget(tx, unit, relation); err != nil {
		return err
	}

	return tx.ClearResolved(unit, relation)
}

func forgetUnitBackoff(tx *state.Tx, unit string, _ int) error {
	return tx.ChangeWorkflow(unit, func(w *state.Workflow) {
		if w.Failure != nil {
			w.Failure.Backoff = 0
		}
	})
}

// forgetRelationBackoff makes the next failure of the relation be retried as soon as a first one.
func forgetRelationBackoff(tx *state.Tx, unit string, relation int) error {
	rs, _, err := tx.RelationState(unit, relation)
	if err != nil {
		return err
	}

	if rs.Failure != nil {
		rs.Failure.Backoff = 0
	}
	return tx.PutRelationState(unit, relation, rs)
}

// startProcess runs the hook in a goroutine that ends with r.done. The hook outlives ctx, since the loop
// decides when to end it.
func (u *uniter) startProcess(ctx context.Context, r *runningHook) {
	ctx, r.kill = context.WithCancel(context.WithoutCancel(ctx))
	interrupted, interrupt := context.WithCancel(ctx)
	r.interrupt = interrupt
	env := r.facts.envFacts(u, r.op.ClientID)
	if why := env.Relation.TooManyMembers(); why != "" {
		u.output.Write("WARNING", r.op.Hook.Name, why)
	}

	spec := hookexec.Spec{
		ID:       r.op.ID,
		Hook:     r.op.Hook.Name,
		CharmDir: u.Folder.Charm(),
		Env:      hookexec.Environment(env, os.Getenv),
		Debug:    r.facts.debug,
		Record:   u.Folder.ProcessPath(),
		Begin:    func() { u.output.Note("INFO", r.op.Hook.Name, beginLine(r.op)) },
		Output: func(s hookexec.Stream, at time.Time, line string) {
			u.output.WriteAt(at, r.noteLine(s, line), r.op.Hook.Name, line)
		},
		Interrupt: interrupted.Done(),
		Fault:     u.faultPoint,
	}

	go func() {
		defer close(r.done)
		r.outcome = u.runner.Run(ctx, r.withAction(spec, r.facts.action))
		r.endedAt = now()
	}()
}

// noteLine returns the level at which the unit's log shows a line of the hook's output. It keeps the last
// line of stderr that tells something.
func (r *runningHook) noteLine(s hookexec.Stream, line string) (level string) {
	if s != hookexec.Stderr {
		return "INFO"
	}

	if telling := lastTelling(line); telling != "" {
		r.lastStderr = telling
	}
	return "ERROR"
}

func (u *uniter) killHook() {
	if u.running != nil {
		u.dropHook(u.running.kill)
	}
}

func (u *uniter) dropHook(stop context.CancelFunc) {
	stop()
	<-u.running.done
	u.logEnd(u.running, "killed because its agent ends; it runs again")
	u.clearRunning()
}

// endHook gives the hook in flight shutdownTimeout to end, and commits its outcome. A hook that has not
// ended by then is killed, and runs again later. An action is killed too, but that is its outcome. Nothing
// is committed for a machine that a different agent runs already.
func (u *uniter) endHook(why error) error {
	u.ending = true
	if u.running == nil {
		return nil
	}
	if errors.Is(why, state.ErrClaimLost) {
		u.dropHook(u.running.interrupt)
		return nil
	}
	defer u.killHook()

	timer := time.NewTimer(shutdownTimeout)
	defer timer.Stop()

	select {
	case <-u.running.done:
	case <-timer.C:
		if !hook.IsAction(u.running.op.Hook) {
			u.Log.Warn("the hook in flight does not end; killing it; it will run again",
				"hook", u.running.op.Hook.Name)
			return nil // killHook kills it
		}

		u.running.endReason = cmp.Or(u.running.endReason, whyEnding)
		u.running.kill()
		<-u.running.done
	}

	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()

	return u.recordOutcome(ctx)
}

func (u *uniter) clearRunning() {
	u.server.Unregister(u.running.op.ClientID)
	u.running.ctx.Close()
	u.running.kill()
	u.running = nil
}

// mayContinue reports whether another hook may begin with the commit which ends the one in flight.
func (u *uniter) mayContinue(ctx context.Context) bool {
	if u.ending || u.ticket == nil || !u.Limiter.mayContinue(u.ticket, u.hooksInTurn) || u.checkSocket() != nil {
		return false
	}
	if time.Since(u.turnBegan) > maxTurn {
		return false
	}
	_, err := u.takeSnapshot(ctx)
	return err == nil
}

// prepareNext returns the hook that follows the writes of tx, so that the same commit can begin it. It
// returns nil if no hook follows, or if the loop must read the store before it can decide.
func (u *uniter) prepareNext(tx *state.Tx) *runningHook {
	u.cache.applyWrites(u.Unit, tx.Writes())
	if !u.cache.isFresh() {
		return nil
	}

	snap := u.cache.snap
	snap.Now = now()
	snap.LastHook = u.lastHookEnd
	next, snap := decide.NextTogether(snap)
	s, ok := next.(decide.RunHook)
	if !ok || s.From != decide.FromQueue && s.From != decide.FromWorkflow || snap.Debug != nil {
		return nil
	}

	facts, err := gatherFacts(s.Hook, snap)
	if err != nil {
		return nil // the loop comes to it, and says so
	}

	return u.newRunningHook(s, snap, facts)
}

// subjectVersion returns the version that the hook acts on: that of the remote unit's settings, the
// leader's settings, the resources or the configuration.
func subjectVersion(snap decide.Snapshot, h state.Hook) int64 {
	switch {
	case h.Kind == hook.LeaderSettingsChanged:
		return snap.Leader.Version
	case h.Kind == hook.Install || h.Kind == hook.UpgradeCharm:
		return snap.Resources
	case h.Relation == state.NoRelation:
		return snap.ConfigVersion
	}

	for _, m := range snap.Relations[h.Relation].Members {
		if m.Unit == hook.Member(h) {
			return m.Version
		}
	}

	return 0
}

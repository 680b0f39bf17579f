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

// maxStderr limits the line from a failed hook's stderr or log that the unit's status shows, in bytes.
const maxStderr = 500

// runningHook is the hook in flight.
type runningHook struct {
	op       state.Op // as recorded in the store
	facts    hookFacts
	from     decide.Cause
	arrivals []hook.Arrival    // the arrivals to add to the queue when the hook begins
	entry    state.MemberState // the queue's entry from which the hook comes; zero for other hooks
	ctx      *hookctx.Context  // answers the hook's tools

	output     actionOutput // the output of an action or a command
	lastStderr string       // the last line with a letter on stderr, at most maxStderr bytes
	lastLogged lastError    // the last line that the hook has logged as an error
	endReason  string       // why the hook was interrupted or killed; empty if it was not

	interrupt context.CancelFunc // sends SIGTERM to the process group
	kill      context.CancelFunc // kills the process group
	done      chan struct{}      // closed after outcome and endedAt were set
	outcome   hookexec.Outcome
	endedAt   time.Time // when the process ended
}

// hasEnded reports whether the hook's process has ended. Only then can outcome and endedAt be read.
func (r *runningHook) hasEnded() bool { return isClosed(r.done) }

// beginHook commits that the hook begins, and then starts the hook. So no hook runs without a record.
// If the hook is an action that an operator has just cancelled, beginHook records and starts nothing, and returns
// nil.
func (u *uniter) beginHook(ctx context.Context, s decide.RunHook, snap decide.Snapshot) error {
	facts, err := gatherFacts(s.Hook, snap)
	if err != nil {
		return err
	}
	if err := u.renewSocket(); err != nil {
		return err
	}

	u.endStaleDebug(ctx, &facts) // a session that has ended must not hold the hook
	r := u.newRunningHook(s, snap, facts)
	err = u.commitStep(ctx, "begin", func(tx *state.Tx) error { return r.recordBegin(tx, u.Unit) })
	if s.From == decide.FromOperator && errors.Is(err, state.ErrNotFound) {
		return nil // an operator has cancelled the action in the meantime
	}
	if err != nil {
		return err
	}

	if s.From == decide.FromCrash {
		u.logUnrecordedEnd(*snap.Uniter.Op)
	}
	u.logLeftOver(s, snap) // warns about processes of the last attempt
	u.spawn(ctx, r)
	return nil
}

// logLeftOver logs a warning about processes that the last attempt of this hook has left running. It does not
// end them, since a process in a separate session may be a daemon of the charm.
func (u *uniter) logLeftOver(s decide.RunHook, snap decide.Snapshot) {
	left := hookexec.LeftOver(previousClient(s, snap))
	if len(left) > 0 {
		u.output.Write("WARNING", s.Hook.Name, fmt.Sprintf("hook %q runs again, while processes of its last attempt are still running: %s",
			s.Hook.Name, strings.Join(left, ", ")))
	}
}

// previousClient returns the client id of the hook's previous attempt, or an empty string if there was no
// previous attempt.
func previousClient(s decide.RunHook, snap decide.Snapshot) string {
	if s.From == decide.FromCrash {
		return snap.Uniter.Op.ClientID
	}
	if s.From != decide.FromFailure {
		return ""
	}

	failure := snap.Uniter.Workflow.Failure
	if s.Hook.Relation != state.NoRelation {
		failure = snap.Uniter.Relations[s.Hook.Relation].Failure
	}
	if failure == nil {
		return ""
	}
	return failure.ClientID
}

// renewSocket creates the unit's socket again if the socket was removed, for example by a program that clears
// temporary directories. If another user has since taken the name of the socket's directory, the socket moves
// to a different path. A running hook uses the old path, so renewSocket then returns an error instead of
// moving the socket.
func (u *uniter) renewSocket() error {
	path, err := u.Socket()
	if err != nil {
		return err
	}
	if path == u.server.Path() {
		return u.server.Renew()
	}
	if u.running != nil {
		return fmt.Errorf("cannot move the socket to %q: a hook is running", path)
	}

	moved, err := server.ListenFor(path, u.outside())
	if err != nil {
		return err
	}

	u.Log.Info("moving the socket", "from", u.server.Path(), "to", path)
	_ = u.server.Close() // the old path no longer belongs to this agent
	u.server = moved
	return nil
}

// newRunningHook returns a hook that has not begun. It creates the hook's context and the operation to record.
func (u *uniter) newRunningHook(s decide.RunHook, snap decide.Snapshot, facts hookFacts) *runningHook {
	r := &runningHook{facts: facts, from: s.From, arrivals: snap.Queued, done: make(chan struct{})}
	r.ctx = u.newContext(facts, &r.lastLogged)
	r.entry = snap.Uniter.Members[s.Hook.Relation][hook.Member(s.Hook)]
	r.op = state.Op{
		ID:       server.NewClientID(), // a random id for the run, unrelated to ClientID
		Hook:     s.Hook,
		ClientID: server.NewClientID(),
		Started:  now(),
		Holder:   facts.holder,
		Expect:   decide.StateAfter(s.Hook, snap.Uniter.Workflow),
		Version:  subjectVersion(snap, s.Hook),
	}
	return r
}

// spawn starts the process of a hook whose beginning is committed. The hook becomes u.running.
func (u *uniter) spawn(ctx context.Context, r *runningHook) {
	u.server.Register(r.op.ClientID, r.ctx)
	u.faultPoint("before-spawn")
	u.Log.Info("hook starts", r.facts.logAttrs()...)
	u.startProcess(ctx, r)
	u.running = r
	u.hooksInTurn++
}

// recordBegin records in tx that the hook begins. It first adds the arrivals to the queue. Then it removes a
// queued hook from the queue, marks an action as started, or clears an operator's request to retry the hook.
func (r *runningHook) recordBegin(tx *state.Tx, unit string) error {
	h := r.op.Hook
	hasEntry := r.from == decide.FromQueue && h.Kind != hook.Broken // a broken hook has no entry in the queue
	// Read the entry and the workflow in one round trip. With arrivals, recordArrivals prefetches instead.
	if hasEntry && len(r.arrivals) == 0 {
		if err := tx.PrefetchMembers(unit, map[int][]string{h.Relation: {hook.Member(h)}}); err != nil {
			return err
		}
	}

	if err := recordArrivals(tx, unit, r.arrivals); err != nil {
		return err
	}
	if err := r.recordCause(tx, unit, hasEntry); err != nil {
		return err
	}

	return tx.PutOp(unit, r.op)
}

// recordCause records that the cause of the hook has been handled: it marks an action as started, clears a
// request to retry the hook, or removes the hook from its entry in the queue. It does nothing for hooks of
// the workflow, for broken hooks that are not retries, and for hooks that run again after a crash. hasEntry
// is true if the hook comes from an entry in the queue.
func (r *runningHook) recordCause(tx *state.Tx, unit string, hasEntry bool) error {
	h := r.op.Hook
	switch {
	case r.from == decide.FromOperator:
		return actions.Start(tx, h.Action, r.op.ID, now())
	case r.from == decide.FromFailure:
		return takeRetry(tx, unit, h.Relation)
	case hasEntry:
		m := hook.Take(r.entry)
		m.Version = max(m.Version, r.op.Version) // the hook sees the settings as they are now
		return tx.RewriteMember(unit, h.Relation, hook.Member(h), m)
	}

	return nil
}

// takeRetry clears an operator's request to retry a failed hook, and resets the hook's backoff. An automatic
// retry, for which there is no request, changes nothing and keeps its backoff. If the operator has instead
// requested that the hook counts as done, takeRetry keeps this request: it came too late for this run, and
// applies if the hook fails again.
func takeRetry(tx *state.Tx, unit string, relation int) error {
	if err := tx.PrefetchHook(unit, relation, ""); err != nil { // no member: its record does not change
		return err
	}
	u, err := tx.Unit(unit)
	if err != nil {
		return err
	}

	request := u.Resolved
	if relation != state.NoRelation {
		request = u.ResolvedRelations[relation]
	}
	if request != state.ResolvedRetry {
		return nil
	}

	if err := resetBackoff(tx, unit, relation); err != nil {
		return err
	}
	return tx.ClearResolved(unit, relation)
}

// resetBackoff resets the backoff of a failed hook of the relation, or of the unit itself for
// [state.NoRelation]. It changes nothing if no hook has failed.
func resetBackoff(tx *state.Tx, unit string, relation int) error {
	if relation == state.NoRelation {
		return tx.ChangeWorkflow(unit, func(w *state.Workflow) {
			if w.Failure != nil {
				w.Failure.Backoff = 0
			}
		})
	}

	rs, _, err := tx.RelationState(unit, relation)
	if err != nil {
		return err
	}
	if rs.Failure != nil {
		rs.Failure.Backoff = 0
	}
	return tx.PutRelationState(unit, relation, rs)
}

// startProcess runs the hook in a goroutine that closes r.done when the hook ends. The end of ctx does not
// end the hook, since the loop decides when the hook must end, and then calls r.interrupt or r.kill.
func (u *uniter) startProcess(ctx context.Context, r *runningHook) {
	ctx, r.kill = context.WithCancel(context.WithoutCancel(ctx))
	interrupted, interrupt := context.WithCancel(ctx) // r.kill also cancels it
	r.interrupt = interrupt

	env := r.facts.envFacts(u, r.op.ClientID)
	if warning := env.Relation.TooManyMembers(); warning != "" {
		u.output.Write("WARNING", r.op.Hook.Name, warning)
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
			level := r.noteLine(s, line)
			u.output.WriteAt(at, level, r.op.Hook.Name, line)
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

// noteLine returns the log level for a line of the hook's output: ERROR for stderr, and INFO otherwise. It also
// keeps the last line of stderr that contains a letter, for the unit's status.
func (r *runningHook) noteLine(s hookexec.Stream, line string) (level string) {
	if s != hookexec.Stderr {
		return "INFO"
	}

	if telling := lastTelling(line); telling != "" {
		r.lastStderr = telling
	}
	return "ERROR"
}

// killHook kills the hook in flight, if there is one.
func (u *uniter) killHook() {
	if u.running != nil {
		u.dropHook(u.running.kill)
	}
}

// dropHook calls stop to end the hook in flight, and waits for the hook's end. It commits nothing, so the
// next agent runs the hook again.
func (u *uniter) dropHook(stop context.CancelFunc) {
	stop()
	<-u.running.done
	u.logEnd(u.running, "killed because the agent ends; the hook runs again")
	u.clearRunning()
}

// endHook ends the hook in flight, if there is one, because the agent is stopping. cause is the reason why the
// agent is stopping.
//
// The hook gets shutdownTimeout to end, and endHook commits its outcome. A hook that takes longer is killed,
// and runs again later. An action that takes longer is also killed, and endHook commits that the action has
// failed. If cause is [state.ErrClaimLost], another agent has the machine: endHook interrupts the hook at
// once, and commits nothing.
func (u *uniter) endHook(cause error) error {
	u.ending = true
	if u.running == nil {
		return nil
	}
	if errors.Is(cause, state.ErrClaimLost) {
		u.dropHook(u.running.interrupt)
		return nil
	}
	defer u.killHook() // does nothing once the outcome is recorded

	timer := time.NewTimer(shutdownTimeout)
	defer timer.Stop()
	select {
	case <-u.running.done:
	case <-timer.C:
		if !hook.IsAction(u.running.op.Hook) {
			u.Log.Warn("the running hook does not end; killing it, and it will run again",
				"hook", u.running.op.Hook.Name)
			return nil // the deferred killHook kills the hook
		}

		u.running.endReason = cmp.Or(u.running.endReason, whyEnding)
		u.running.kill()
		<-u.running.done
	}

	// The loop's own ctx is done, so the commit needs a different one.
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()

	return u.recordOutcome(ctx)
}

// clearRunning forgets the hook in flight, and releases everything that it holds.
func (u *uniter) clearRunning() {
	u.server.Unregister(u.running.op.ClientID)
	u.running.ctx.Close()
	u.running.kill()
	u.running = nil
}

// mayContinue reports whether the commit that ends the hook in flight can also begin the next hook. If it
// returns true, it has renewed the unit's socket, and the snapshot from which prepareNext decides.
func (u *uniter) mayContinue(ctx context.Context) bool {
	if u.ending || u.ticket == nil || !u.Limiter.mayContinue(u.ticket, u.hooksInTurn) {
		return false
	}
	if err := u.renewSocket(); err != nil {
		return false // the loop renews the socket again, and reports the error
	}
	if time.Since(u.turnBegan) > maxTurn {
		return false // a process that waits to quiesce the unit gets hookLock first
	}

	_, err := u.takeSnapshot(ctx)
	return err == nil
}

// prepareNext returns the hook that follows once the writes of tx are committed, so that the same commit can
// begin that hook. It returns nil if no hook follows, or if the loop must read the store before it can
// decide.
func (u *uniter) prepareNext(tx *state.Tx) *runningHook {
	// The writes are not committed yet. If the commit fails, the cache is invalidated.
	u.cache.applyWrites(u.Unit, tx.Writes())
	if !u.cache.isFresh() {
		return nil
	}

	snap := u.cache.snap
	snap.Now = now()
	snap.LastHook = u.lastHookEnd

	next, snap := decide.NextTogether(snap)
	s, ok := next.(decide.RunHook)
	if !ok {
		return nil
	}
	// Only beginHook checks that a debug session still exists, logs about the hook's last attempt, and handles a
	// cancelled action.
	isRoutine := s.From == decide.FromQueue || s.From == decide.FromWorkflow
	if !isRoutine || snap.Debug != nil {
		return nil
	}

	facts, err := gatherFacts(s.Hook, snap)
	if err != nil {
		return nil // the loop gathers the facts again, and reports the error
	}

	return u.newRunningHook(s, snap, facts)
}

// subjectVersion returns the current version of the hook's subject: the remote member's settings, the leader's
// settings, the resources or the configuration. It returns 0 for a relation hook whose member is not in the
// relation.
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

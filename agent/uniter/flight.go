package uniter

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"time"

	"bijou/agent/hook"
	"bijou/agent/hookctx"
	"bijou/agent/hookexec"
	"bijou/state"
)

// maxStderr is how much of a hook's last line is kept for its status, in bytes.
const maxStderr = 500

// flight is the hook that runs.
type flight struct {
	op     state.Op
	ctx    *hookctx.Context
	client string

	kept   kept   // what an action or a command has written
	stderr string // the last line that it has written there, not longer than a status bears
	cut    string // why it was told to end, or killed; empty: it was not

	interrupt context.CancelFunc // tells its process group to end
	cancel    context.CancelFunc // kills it
	done      chan struct{}      // closed after outcome was set
	result    hookexec.Outcome
	end       time.Time // when its process ended
}

// ended is true once the hook's process is gone and its outcome is known.
func (f *flight) ended() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// begin persists the hook as being in flight and starts it.
func (u *uniter) begin(ctx context.Context, s RunHook, snap Snapshot) error {
	about, err := u.about(ctx, s.Hook, snap)
	if err == nil {
		_, err = u.Socket()
	}
	if err == nil {
		err = u.server.Renew() // anybody who clears temporary folders may have removed it
	}
	if err != nil {
		return err
	}
	u.endDebug(ctx, &about)
	f := &flight{ctx: u.context(about), done: make(chan struct{})}
	f.client = u.server.Register(f.ctx)
	f.op = state.Op{ID: randomID(), Hook: s.Hook, ClientID: f.client, Started: now(), Holder: about.holder,
		Expect: expected(s.Hook, snap.Uniter.Workflow), Version: version(snap, s.Hook)}
	if err := u.record(ctx, "begin", func(tx *state.Tx) error { return put(tx, u.Unit, f, s.From) }); err != nil {
		u.server.Unregister(f.client)
		return unlessCancelled(err, s.From)
	}
	u.fault("before-spawn")
	u.Log.Info("hook starts", about.attrs()...)
	u.spawn(ctx, f, about)
	u.hook = f
	return nil
}

// put records the hook in flight; what comes from the queue is taken out of it,
// and an operator's wish for a retry is fulfilled.
func put(tx *state.Tx, unit string, f *flight, from Origin) error {
	h := f.op.Hook
	if from == FromOperator {
		if err := tx.StartAction(h.Action, f.op.ID, now()); err != nil {
			return err
		}
	}
	if from == FromFailure {
		if err := tx.ClearResolved(unit, h.Relation); err != nil {
			return err
		}
	}
	if from == FromQueue && h.Kind != hook.Broken {
		m, _, err := tx.MemberState(unit, h.Relation, hook.Member(h))
		if err != nil {
			return err
		}
		m = hook.Take(m)
		m.Version = max(m.Version, f.op.Version)
		if err := tx.PutMember(unit, h.Relation, hook.Member(h), m); err != nil {
			return err
		}
	}
	return tx.PutOp(unit, f.op)
}

// spawn runs the hook's process in a goroutine that the flight's done ends. It
// outlives ctx: the loop decides when the hook has had its time.
func (u *uniter) spawn(ctx context.Context, f *flight, about about) {
	ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	interrupted, interrupt := context.WithCancel(ctx)
	f.interrupt = interrupt
	facts := about.environment(u, f.client)
	if why := facts.Relation.TooManyMembers(); why != "" {
		u.output.Write("WARNING", f.op.Hook.Name, why)
	}
	spec := hookexec.Spec{
		ID:       f.op.ID,
		Hook:     f.op.Hook.Name,
		CharmDir: u.Folder.Charm(),
		Env:      hookexec.Environment(facts, os.Getenv),
		Debug:    about.debug,
		Record:   u.Folder.record(),
		Begin:    func() { u.output.Note("INFO", f.op.Hook.Name, beginning(f.op)) },
		Output: func(s hookexec.Stream, at time.Time, line string) {
			if s == hookexec.Stderr && strings.TrimSpace(line) != "" {
				f.stderr = strings.ToValidUTF8(line[:min(len(line), maxStderr)], "")
			}
			u.output.WriteAt(at, level(s), f.op.Hook.Name, line)
		},
		Interrupt: interrupted.Done(),
		Fault:     u.fault,
	}
	go func() {
		defer close(f.done)
		f.result = u.runner.Run(ctx, f.asks(spec, about.asked))
		f.end = now()
	}()
}

// level is the log level of a hook's output.
func level(s hookexec.Stream) string {
	if s == hookexec.Stderr {
		return "ERROR"
	}
	return "INFO"
}

// yield tells a hook in flight to end, since another agent runs the unit from now on,
// and drops its outcome.
func (u *uniter) yield() {
	u.hook.interrupt()
	<-u.hook.done
	u.logEnd(u.hook, "it is killed, since its agent ends here; it runs again")
	u.land()
}

// abort kills a hook that is in flight and drops its outcome.
func (u *uniter) abort() {
	if u.hook == nil {
		return
	}
	u.hook.cancel()
	<-u.hook.done
	u.logEnd(u.hook, "it is killed, since its agent ends here; it runs again")
	u.land()
}

// shutdown gives a hook in flight its grace, and commits its outcome if it ends
// in time. One of a machine that is another agent's now has none to commit.
func (u *uniter) shutdown(why error) error {
	if u.hook == nil {
		return nil
	}
	if errors.Is(why, state.ErrClaimLost) {
		u.yield()
		return nil
	}
	defer u.abort()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-u.hook.done:
	case <-timer.C:
		if hook.IsAsked(u.hook.op.Hook) {
			u.hook.cut = cmp.Or(u.hook.cut, whyEnding)
			u.hook.cancel()
			<-u.hook.done
			break
		}
		u.Log.Warn("the hook in flight does not end; it is killed, and will be run again", "hook", u.hook.op.Hook.Name)
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return u.conclude(ctx)
}

// land forgets the hook in flight.
func (u *uniter) land() {
	u.server.Unregister(u.hook.client)
	u.hook.ctx.Close()
	u.hook.cancel()
	u.hook = nil
	u.lastHook = time.Now()
	u.release()
}

// version is that of what the hook is about in the snapshot: the remote unit's
// settings, the leader's, or the configuration.
func version(snap Snapshot, h state.Hook) int64 {
	switch {
	case h.Kind == hook.LeaderSettingsChanged:
		return snap.Leader.Version
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

// randomID names a run of a hook: 128 random bits.
func randomID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

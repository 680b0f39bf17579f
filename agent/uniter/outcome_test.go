package uniter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/agent/hook"
	"bijou/agent/hookctx"
	"bijou/agent/unitlog"
	"bijou/hookenv/hookapi"
	"bijou/hookenv/server"
	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

// TestRefusedHookListsNoChanges checks that the log of a hook whose changes the store refuses does not list
// them, since they are discarded. The log of a hook whose changes are committed lists them.
func TestRefusedHookListsNoChanges(t *testing.T) {
	for _, refusal := range []error{nil, state.ErrDenied} {
		t.Run(fmt.Sprint(refusal), func(t *testing.T) {
			l := newLife(t, nil)
			path := l.logToFile()
			relation := relationsOfPlay()[1].ID
			statetest.Enter(t, l.st, relation, "app/0", nil)

			r := &runningHook{
				op:      state.Op{ID: "one", Hook: hook.ForUnit(hook.Start), Started: now()},
				endedAt: now(),
				kill:    func() {},
				ctx: hookctx.New(hookctx.Options{
					State: l.st, Update: l.st.Update, Log: func(string, string) {},
					Facts: hookapi.Facts{Unit: "app/0", Service: "app", Hook: "start"},
				}),
			}
			value := "new"
			own := hookapi.Node{Relation: relation, Unit: "app/0"}
			l.must(r.ctx.SetSettings(t.Context(), own, map[string]*string{"turn": &value}))
			l.update(func(tx *state.Tx) error { return tx.PutOp("app/0", r.op) })

			l.u.server = &server.Server{}
			l.u.running = r
			if refusal != nil {
				l.failNextUpdate(refusal)
			}
			l.must(l.u.recordOutcome(t.Context()))

			log := readFile(t, path)
			isListed := strings.Contains(log, `setting changed: "turn"`)
			hasFailed := strings.Contains(log, `"start" failed`)
			if isListed != (refusal == nil) || hasFailed != (refusal != nil) {
				t.Errorf("the log is:\n%s", log)
			}
		})
	}
}

// logToFile makes the unit log to a file, and returns its path.
func (l *life) logToFile() string {
	path := filepath.Join(l.t.TempDir(), "hooks.log")
	logs := unitlog.NewSender(l.st, l.u.Log)
	l.t.Cleanup(logs.Close)
	l.u.output = logs.Open("app/0", path)
	return path
}

// failNextUpdate makes the next commit fail with failure after its function has run.
func (l *life) failNextUpdate(failure error) {
	l.u.rawUpdate = func(ctx context.Context, f func(tx *state.Tx) error) error {
		l.u.rawUpdate = l.st.Update
		return l.st.Update(ctx, func(tx *state.Tx) error {
			if err := f(tx); err != nil {
				return err
			}
			return failure
		})
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestExplainRefusal checks which errors of a commit mean that the hook's writes are refused. The agent
// retries the commit after any other error, for example if the store is away.
func TestExplainRefusal(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"none":       {nil, ""},
		"away":       {state.ErrAway, ""},
		"another":    {errors.New("disk full"), ""},
		"not leader": {state.ErrNotLeader, "only the leader can change"},
		"refused":    {fmt.Errorf("%w: machine 1 cannot put %q", state.ErrDenied, "units/a/0/state"), `no right to change, so all changes of the hook are dropped: permission denied: machine 1 cannot put "units/a/0/state"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := explainRefusal(&runningHook{}, test.err)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

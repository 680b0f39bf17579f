package updater

import (
	"errors"
	"testing"
	"time"

	"bijou/state"
	"bijou/updater/record"
)

// Who decided on a request that is no more takes no turn at a rolling component.
func TestTurnOfAnotherRequest(t *testing.T) {
	r := newRig(t, "sqlite:"+t.TempDir()+"/neco.db")
	w := &worker{o: WorkerOptions{Store: r.store, LRN: 2}, claim: r.claim(2)}
	q := *request(nil)
	for _, tt := range []struct {
		what   string
		now    *record.Request
		wanted error
	}{
		{"none", nil, errStale},
		{"stopped", request(func(q *record.Request) { q.Stop = true }), errStale},
		{"ended", ended(false), errStale},
		{"another attempt", request(func(q *record.Request) { q.Attempt = 2 }), errStale},
		{"another", request(func(q *record.Request) { q.ID = 5 }), errStale},
		{"of another store", request(func(q *record.Request) { q.StartedAt = t0().Add(time.Second) }), errStale},
		{"the same, of which a server is missing", request(func(q *record.Request) { q.Missing = []int{3} }), nil},
	} {
		r.update(func(tx *state.KeyTx) error {
			if tt.now == nil {
				return nil
			}
			return tx.Put(Keys().Current(), *tt.now)
		})
		if err := w.moveTurn(t.Context(), "etcd", q, MoveTake); !errors.Is(err, tt.wanted) {
			t.Errorf("%s: %v", tt.what, err)
		}
	}
}

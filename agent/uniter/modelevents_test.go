package uniter

import (
	"fmt"
	"strconv"
	"time"

	"bijou/state"
	"bijou/state/actions"
	"bijou/testscripts/kit/statetest"
)

// event causes one random event.
func (l *life) event() {
	switch l.pick(20) {
	case 0, 1:
		l.member(func(tx *state.Tx, id int, unit string) error {
			return tx.EnterRelation(id, unit, map[string]string{"k": "v"})
		})
	case 2:
		l.member(func(tx *state.Tx, id int, unit string) error { return tx.LeaveRelation(id, unit) })
	case 3, 4:
		l.turn++
		value := strconv.Itoa(l.turn)
		l.member(func(tx *state.Tx, id int, unit string) error {
			_, err := tx.MergeSettings(id, unit, map[string]*string{"k": &value})
			return err
		})
	case 5:
		l.configure()
	case 6:
		l.upgrade()
	case 7:
		l.destroy()
	case 8:
		l.answer()
	case 9:
		l.crash()
	case 10:
		time.Sleep(20 * time.Second)
	default:
		l.step()
	}
}

// member makes a random change to a random other member. The state may refuse the change.
func (l *life) member(do func(tx *state.Tx, id int, unit string) error) {
	r := relationsOfPlay()[l.pick(3)]
	unit := fmt.Sprintf("%s/%d", r.RemoteService, l.pick(2))
	if r.Peer {
		unit = fmt.Sprint("app/", 1+l.pick(2))
	}
	_ = l.st.Update(l.t.Context(), func(tx *state.Tx) error { return do(tx, r.ID, unit) })
}

func (l *life) update(f func(tx *state.Tx) error) {
	l.t.Helper()
	l.must(l.u.Update(l.t.Context(), f))
}

// configure changes the configuration's version.
func (l *life) configure() {
	l.turn++
	l.m.configured, l.m.configure = l.m.configured+1, true
	statetest.Update(l.t, l.st, func(tx *state.Tx) error {
		_, err := tx.SetConfig("app", map[string]any{"turn": int64(l.turn)})
		return err
	})
}

// upgrade changes the service to a random revision, by force or not.
func (l *life) upgrade() {
	revision, force := 1+l.pick(revisions), l.pick(2) == 0
	statetest.Update(l.t, l.st, func(tx *state.Tx) error {
		c, err := tx.Charm(fmt.Sprint("local:jammy/app-", revision))
		if err != nil {
			return err
		}
		return tx.UpgradeService("app", state.UpgradeSpec{Charm: c.URL, Force: force})
	})
}

// destroy destroys a relation or, rarely, the unit.
func (l *life) destroy() {
	if n := l.pick(12); n < 2 {
		_ = l.st.Update(l.t.Context(), func(tx *state.Tx) error { return tx.DestroyRelation(1 + n) })
	} else if n == 2 {
		statetest.Update(l.t, l.st, func(tx *state.Tx) error { return tx.DestroyUnit("app/0") })
	}
}

// answer resolves one of the errors, as an operator would.
func (l *life) answer() {
	relation := []string{"", "ring:0", "db:1", "db:2"}[l.pick(4)]
	retry := l.pick(2) == 0
	_ = l.st.Update(l.t.Context(), func(tx *state.Tx) error { _, err := actions.SetResolved(tx, "app/0", relation, retry); return err })
}

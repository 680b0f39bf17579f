package updater

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"bijou/state"
	"bijou/testscripts/etcdtest"
	"bijou/updater/record"
	"bijou/updater/release"
)

// TestBarriers takes many workers through steps in which nothing is to be done,
// and tells how long the barriers took (BIJOU_TEST_WORKERS of them, 200 in a long
// run). Each worker is woken once a step, by the gate.
func TestBarriers(t *testing.T) {
	workers := 20
	if os.Getenv("BIJOU_TEST_LONG") != "" {
		workers = 200
	}
	if n, err := strconv.Atoi(os.Getenv("BIJOU_TEST_WORKERS")); err == nil {
		workers = n
	}
	r := newRig(t, etcdtest.For(t, etcdtest.Options{Members: 1}).URL("/neco"))
	for n := range 18 {
		r.manifest.Components = append(r.manifest.Components, release.Component{Name: fmt.Sprintf("c%d", n), Strategy: release.Any})
	}
	var lrns []int
	for n := range workers {
		lrns = append(lrns, n)
		r.worker(n, filepath.Join(t.TempDir(), "w"), &fake{}, WorkerOptions{Version: "1.1"})
	}
	r.updater(nil)
	r.eventually("all workers", func() bool { return r.present() == workers })
	began := time.Now()
	r.begin("1.1", lrns...)
	r.await("the end", func(q record.Request, _ map[int]record.Status) bool {
		return q.Succeeded() && len(q.Servers) == workers
	})
	t.Logf("%d workers, 18 steps: %s", workers, time.Since(began).Round(time.Millisecond))
}

// present counts the workers that live.
func (r *rig) present() (n int) {
	err := r.store.View(r.t.Context(), func(v *state.KeyView) error {
		all, err := LoadPresences(v)
		n = len(all)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

package worker

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"bijou/state/keyspace"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/updatertest"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// cost is the load that an update put on etcd.
type cost struct {
	total                         time.Duration
	cpu                           time.Duration // the CPU time of workers, leader and etcd
	own                           time.Duration // the CPU time of workers and leader
	events, sent, received, calls float64
}

// emptySteps returns a plan of n steps that do nothing.
func emptySteps(n int) (m release.Manifest) {
	for i := range n {
		m.Components = append(m.Components, release.Component{Name: fmt.Sprintf("c%d", i), Strategy: release.Any})
	}
	return m
}

// measure runs an update of workers with a number of empty steps on one etcd. Each worker has its own
// connection, session and watch, as a separate process would.
func measure(t *testing.T, workers, steps int) (c cost) {
	t.Helper()
	cluster := etcdtest.For(t, etcdtest.Options{Members: 1})
	r := newRig(t, cluster.URL("/neco"))
	r.manifest = emptySteps(steps)
	disk, err := os.MkdirTemp("/dev/shm", "bijou-steps-") // real servers have separate disks, and these share one
	if errors.Is(err, os.ErrNotExist) {
		disk, err = os.MkdirTemp("", "bijou-steps-")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(disk) })
	var lrns []int
	for n := range workers {
		lrns = append(lrns, n+1)
		r.worker(n+1, fmt.Sprintf("%s/%d", disk, n+1), &updatertest.Server{}, Options{})
	}
	r.Eventually("all workers are there", func() bool { return r.presences() == workers })
	r.updater()
	before, err := cluster.Members[0].Metrics()
	if err != nil {
		t.Fatal(err)
	}
	began, busy := time.Now(), ownCPU()
	r.Begin("1.1", lrns...)
	r.ends()
	c.total = time.Since(began)
	after, err := cluster.Members[0].Metrics()
	if err != nil {
		t.Fatal(err)
	}
	c.own = ownCPU() - busy
	c.cpu = c.own + time.Duration((after["process_cpu_seconds_total"]-before["process_cpu_seconds_total"])*float64(time.Second))
	grown := func(name string) float64 { return (after[name] - before[name]) / float64(steps) }
	c.events, c.calls = grown("etcd_debugging_mvcc_events_total"), grown("grpc_server_started_total")
	c.sent, c.received = grown("etcd_network_client_grpc_sent_bytes_total"), grown("etcd_network_client_grpc_received_bytes_total")
	return c
}

// ownCPU returns the CPU time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ends waits for success with few requests to the store.
func (r *rig) ends() {
	r.T.Helper()
	for failures := 0; ; {
		var q *record.Request
		var revision int64
		err := r.Store.View(r.T.Context(), func(v *keyspace.View) (err error) {
			if q, err = updater.LoadRequest(v); err == nil {
				revision, err = v.Revision()
			}
			return err
		})
		if err == nil && (q == nil || !q.Ended()) {
			err = r.Store.Await(r.T.Context(), revision, keyspace.Exactly(keys.Current))
		} else if err == nil && q.Succeeded() {
			return
		}
		if err != nil && failures < 10 { // a busy machine may delay etcd beyond the timeout
			failures++
			continue
		}
		if err != nil || q != nil && q.Stop {
			r.T.Fatalf("it has not succeeded: %v, %+v", err, q)
		}
	}
}

func (r *rig) presences() (n int) {
	r.T.Helper()
	err := r.Store.View(r.T.Context(), func(v *keyspace.View) error {
		all, err := updater.PeekServers[record.Presence](v, keys.Presences)
		n = len(all)
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return n
}

func quiet(t testing.TB) {
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	t.Cleanup(func() { slog.SetDefault(was) })
}

// TestCostOfAStep checks that the cost of a step grows with the number of workers, and not with its square.
// Each worker causes one event for the leader (the worker has reached the step) and gets one event (the gate
// is open). The limit is three events instead of two, to leave room for presences and the start. The number
// of bytes that each worker gets from etcd does not depend on the number of workers. The request, which lists
// all workers, is sent only twice.
//
// If the machine stands still for two seconds, each worker reads the records of all others. Therefore only
// the best of three runs counts.
func TestCostOfAStep(t *testing.T) {
	need.Whole(t)
	quiet(t)
	const steps, few, many = 8, 10, 80
	var said []string
	for range 3 {
		low, high := measure(t, few, steps), measure(t, many, steps)
		lone, each := low.sent/few, high.sent/many
		said = append(said, fmt.Sprintf("a step of %d and %d workers: %.0f and %.0f events; for each worker %.0f and %.0f bytes from etcd",
			few, many, low.events, high.events, lone, each))
		if low.events <= 3*few+8 && high.events <= 3*many+8 && each <= 1.25*lone && each <= 1200 {
			t.Log(said)
			return
		}
	}
	t.Errorf("it grows faster than the number of workers: %q", said)
}

// busy keeps all processors overloaded until the test ends.
func busy(t *testing.T) {
	t.Helper()
	for range 8 * runtime.NumCPU() {
		c := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	}
}

// TestCostBesideOtherWork checks that a step on a busy machine costs at most three times as much as on a
// quiet one. On a quiet machine a step costs one call for each worker's record, some calls of the leader, and
// 1,200 bytes for each worker. No worker reads the other records before the gate is late.
func TestCostBesideOtherWork(t *testing.T) {
	need.Whole(t)
	need.Uninstrumented(t)
	quiet(t)
	busy(t)
	const steps, workers = 6, 80
	c := measure(t, workers, steps)
	t.Logf("%.2f s; a step: %.0f calls, %.0f bytes from etcd", c.total.Seconds(), c.calls, c.sent)
	if c.calls > 3*1.1*workers || c.sent > 3*1200*workers {
		t.Errorf("a step of %d workers: %.0f calls, %.0f bytes from etcd", workers, c.calls, c.sent)
	}
}

// TestSteps makes the measurements in docs/dev/performance.md. TestSteps/quiet/200 is one of them.
func TestSteps(t *testing.T) {
	if os.Getenv("BIJOU_MEASURE") == "" {
		t.Skip("BIJOU_MEASURE is not set")
	}
	quiet(t)
	const steps = 18
	for _, load := range []string{"quiet", "busy"} {
		t.Run(load, func(t *testing.T) {
			if load == "busy" {
				busy(t)
			}
			for _, workers := range []int{3, 50, 200, 400} {
				t.Run(fmt.Sprint(workers), func(t *testing.T) {
					c := measure(t, workers, steps)
					fmt.Printf("%s, %3d workers, %d empty steps: %.2f s, %.2f s of CPU; a step: %.0f events, %.0f calls, %.0f bytes to etcd, %.0f bytes from it\n",
						load, workers, steps, c.total.Seconds(), c.cpu.Seconds(), c.events, c.calls, c.received, c.sent)
				})
			}
		})
	}
}

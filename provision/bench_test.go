package provision

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bijou/state"
	"bijou/testscripts/fakes/dummy"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/await"
)

// BenchmarkMachines measures the time from the provisioner's start until the instances of N machines are
// recorded. The dummy starts each of them immediately. BIJOU_BENCH_MACHINES="100 1000" sets the numbers of
// machines. Etcd syncs to disk, as in production.
func BenchmarkMachines(b *testing.B) {
	for _, field := range strings.Fields(os.Getenv("BIJOU_BENCH_MACHINES")) {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("sqlite-%d", n), func(b *testing.B) {
			benchmarkMachines(b, n, func() string { return "sqlite:" + filepath.Join(b.TempDir(), "state.db") })
		})
		b.Run(fmt.Sprintf("etcd-%d", n), func(b *testing.B) {
			etcdtest.Need(b)
			cluster := etcdtest.For(b, etcdtest.Options{Sync: true})
			run := 0
			benchmarkMachines(b, n, func() string {
				run++
				return cluster.URL(fmt.Sprintf("/%d", run))
			})
		})
	}
}

func benchmarkMachines(b *testing.B, n int, url func() string) {
	for b.Loop() {
		b.StopTimer()
		st := benchmarkState(b, url(), n)
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error)
		b.StartTimer()
		go func() {
			done <- Run(ctx, Options{State: st, Provider: dummy.New(b.TempDir()), Log: slog.New(slog.DiscardHandler)})
		}()
		awaitRecorded(b, st)
		b.StopTimer()
		cancel()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		st.Close()
		b.StartTimer()
	}
}

func benchmarkState(b *testing.B, url string, n int) *state.State {
	env := state.Environment{Name: "e", UUID: "u", Provider: dummy.Name, DefaultSeries: "noble"}
	if err := state.Create(b.Context(), url, env); err != nil {
		b.Fatal(err)
	}
	st, err := state.Open(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := st.AddMachines(b.Context(), n, state.Machine{}); err != nil {
		b.Fatal(err)
	}
	return st
}

func awaitRecorded(b *testing.B, st *state.State) {
	await.Until(b, await.Poll{Limit: time.Hour}, "all instances are recorded", func() (all bool) {
		err := st.View(b.Context(), func(v *state.View) error {
			machines, err := v.Machines()
			all = !slices.ContainsFunc(machines, func(m state.Machine) bool { return m.InstanceID == "" })
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		return all
	})
}

// Command hookfloor measures the minimal cost of a hook: two durable commits of an environment's store,
// and an empty process between them, one after the other.
//
//	hookfloor STORE-URL PROGRAM TIMES
//
// It prints the milliseconds of one such hook, and the milliseconds of this process's own CPU time without
// the program's. Its writes remain in the store, so use an environment that is only for measuring.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"bijou/state"
	"bijou/state/store"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: hookfloor STORE-URL PROGRAM TIMES")
	}
	times, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	st, err := state.Open(ctx, args[0])
	if err != nil {
		return err
	}
	defer st.Close()
	var revision int64
	hook := func() error {
		for n := range 2 {
			if n == 1 {
				if err := exec.Command(args[1]).Run(); err != nil {
					return err
				}
			}
			if revision, err = commit(ctx, st.Store(), revision); err != nil {
				return err
			}
		}
		return nil
	}
	// The first hook also connects and fills caches, so it is not measured.
	if err := hook(); err != nil {
		return err
	}
	begun, before := time.Now(), cpu()
	for range times {
		if err := hook(); err != nil {
			return err
		}
	}
	per := func(d time.Duration) float64 { return d.Seconds() * 1e3 / float64(times) }
	fmt.Printf("%.2f %.2f\n", per(time.Since(begun)), per(cpu()-before))
	return nil
}

// commit writes the same records as the beginning or the end of a hook: the operation, the workflow and a
// member's record.
func commit(ctx context.Context, s store.Store, revision int64) (int64, error) {
	var t store.Txn
	for _, name := range []string{"op", "workflow", "member"} {
		key := "hookfloor/" + name
		t.Conds = append(t.Conds, store.Cond{Key: key, Revision: revision})
		t.Ops = append(t.Ops, store.Op{Key: key, Value: []byte(strconv.AppendInt(make([]byte, 300), revision, 10))})
	}
	return s.Commit(ctx, t)
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

package copying_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/backupfile"
	"bijou/state/copying"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/statetest"
)

// backUp returns a backup of an environment.
func backUp(ctx context.Context, s *state.State) (*backupfile.Reader, error) {
	var b bytes.Buffer
	w := backupfile.NewWriter(&b)
	h, err := copying.Backup(ctx, s, w)
	if err := errors.Join(err, w.Close(h)); err != nil {
		return nil, err
	}
	return backupfile.Open(bytes.NewReader(b.Bytes()), int64(b.Len()), backupfile.Environment)
}

// TestBackupUnderLoad backs up an environment on each store while operators change it, and restores it on
// each. The result must contain all writes that were acknowledged before the backup began, and no write that
// began after its end.
func TestBackupUnderLoad(t *testing.T) {
	need.Whole(t)
	etcdtest.Need(t)
	cluster := etcdtest.For(t, etcdtest.Options{Members: 1})
	places := map[string]func(name string) string{
		"sqlite": func(name string) string { return "sqlite:" + filepath.Join(t.TempDir(), name) },
		"etcd":   func(name string) string { return cluster.URL("/" + name) },
	}
	for from, place := range places {
		url := place("from")
		thousand(t, url)
		l := load{t: t, state: statetest.Open(t, url)}
		backups := l.run(5)
		for to, place := range places {
			last := backups[len(backups)-1]
			copied := place(fmt.Sprintf("to-%s-%s", from, to))
			_, err := copying.Restore(t.Context(), copying.Restoration{URL: copied, Replace: true, Adopt: true}, last.Reader)
			check(t, err)
			got, err := copying.Everything(t.Context(), copied)
			check(t, err)
			want := map[string]string{}
			for _, k := range last.Keys {
				want[k.Key] = string(k.Value)
			}
			if diff := cmp.Diff(restorable(want), restorable(got)); diff != "" {
				t.Errorf("%s to %s:\n%s", from, to, diff[:min(len(diff), 1000)])
			}
			if n := l.missing(statetest.Open(t, copied), last); n > 0 {
				t.Errorf("%s to %s: %d are missing", from, to, n)
			}
			t.Logf("%s to %s: %d keys, %d numbers acknowledged before the last of %d backups", from, to, len(last.Keys), last.sum(), len(backups))
		}
	}
}

// restorable removes the keys that may differ between an environment and its restoration.
func restorable(all map[string]string) map[string]string {
	maps.DeleteFunc(all, func(key, _ string) bool {
		return key == "format" || key == "environment" || slices.ContainsFunc([]string{"blobs/", "claims/", "counters/"}, func(p string) bool { return strings.HasPrefix(key, p) })
	})
	return all
}

// load is a number of operators, each of whom sets increasing numbers.
type load struct {
	t     *testing.T
	state *state.State

	mu           sync.Mutex
	acknowledged [3]int
}

// taken is a backup, with the numbers that were acknowledged when it began.
type taken struct {
	*backupfile.Reader
	before [3]int
}

func (b taken) sum() int { return b.before[0] + b.before[1] + b.before[2] }

// run makes n backups while three operators work. Each operator sets a number in a unit's settings, and
// a value that is a blob.
func (l *load) run(n int) (backups []taken) {
	ctx, cancel := context.WithCancel(l.t.Context())
	var operators sync.WaitGroup
	for i := range l.acknowledged {
		operators.Go(func() {
			for number := 1; ctx.Err() == nil; number++ {
				if err := l.set(ctx, i, number); err == nil {
					l.mu.Lock()
					l.acknowledged[i] = number
					l.mu.Unlock()
				}
			}
		})
	}
	for len(backups) < n {
		l.mu.Lock()
		before := l.acknowledged
		l.mu.Unlock()
		a, err := backUp(l.t.Context(), l.state)
		if errors.Is(err, state.ErrNotFound) {
			// juju backup also retries.
			continue
		}
		check(l.t, err)
		backups = append(backups, taken{a, before})
	}
	cancel()
	operators.Wait()
	return backups
}

func (l *load) set(ctx context.Context, i, number int) error {
	return l.state.Update(ctx, func(tx *state.Tx) error {
		text, large := fmt.Sprint(number), strings.Repeat(fmt.Sprint(number, " "), 20000)
		_, err := tx.MergeSettings(0, fmt.Sprintf("mysql/%d", i), map[string]*string{"n": &text, "large": &large})
		return err
	})
}

// missing counts the operators whose last number before the backup is missing.
func (l *load) missing(s *state.State, b taken) (n int) {
	for i := range b.before {
		settings := statetest.Read(l.t, s, func(v *state.View) (map[string]string, error) {
			s, err := v.Settings(0, fmt.Sprintf("mysql/%d", i))
			return s.Values, err
		})
		var got int
		_, err := fmt.Sscan(settings["n"], &got)
		if want := b.before[i]; want > 0 && (err != nil || got < want || !strings.HasPrefix(settings["large"], fmt.Sprint(got, " "))) {
			l.t.Errorf("operator %d: %q is there, %d was acknowledged", i, settings["n"], want)
			n++
		}
	}
	return n
}

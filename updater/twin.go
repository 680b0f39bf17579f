package updater

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"bijou/state"
	"bijou/updater/record"
	"bijou/updater/release"
)

// twinDoubt is how long another worker's presence may stand after that has ended, and
// some: so long it may have been this server's, before its folder was made anew.
const twinDoubt = state.SessionTTL + 5*time.Second

// twinLook is how often one that waits for another worker to be gone looks, besides
// being told.
const twinLook = time.Second

// identity is what tells this server from others, whatever LRN they were given: it
// lies in the worker's folder, and is made when there is none.
func identity(dir string) (string, error) {
	file := filepath.Join(dir, "id")
	id, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeIdentity(file); err == nil {
			id, err = os.ReadFile(file)
		}
	}
	if err != nil {
		return "", fmt.Errorf("cannot tell this server from others: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// makeIdentity makes a new one, whole or not at all. Of two processes that do so at
// once the first wins.
func makeIdentity(file string) error {
	id := rand.Text()
	draft := file + "." + id
	if err := renameio.WriteFile(draft, []byte(id+"\n"), 0o600, renameio.WithTempDir(filepath.Dir(file))); err != nil {
		return err
	}
	err := os.Link(draft, file)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(draft), release.SyncFolder(filepath.Dir(file)))
}

// enter announces the presence once no other server's worker stands there.
func (p *proof) enter(ctx context.Context, s *state.KeySession) error {
	doubt := time.Now().Add(p.doubt())
	for said := false; ; {
		other, err := p.announce(ctx, s)
		if err != nil {
			return err
		}
		p.meet(other)
		if other == nil {
			return nil
		}
		if !said && time.Now().After(doubt) {
			if err := p.denounce(ctx, *other); err != nil {
				return err
			}
			said = true
		}
		if err := p.watch(ctx, s); err != nil {
			return err
		}
	}
}

func (p *proof) doubt() time.Duration {
	if p.o.doubt != 0 {
		return p.o.doubt
	}
	return twinDoubt
}

// watch waits a moment, at most as long as the session lives.
func (p *proof) watch(ctx context.Context, s *state.KeySession) error {
	timer := time.NewTimer(twinLook)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.Done():
		return state.ErrSessionLost
	case <-ctx.Done():
		return ctx.Err()
	}
}

// meet keeps whose worker stands in its place; nil is nobody's.
func (p *proof) meet(other *record.Presence) {
	name := ""
	if other != nil {
		name = "the worker on " + orElse(other.Host, "another machine")
	}
	p.mu.Lock()
	changed := p.other != name
	p.other = name
	p.mu.Unlock()
	p.asked.Do(func() { close(p.known) })
	if p.o.Ready != nil {
		p.ready.Do(p.o.Ready)
	}
	if !changed {
		return
	}
	if other != nil {
		slog.Warn("does not work: another worker goes by this LRN", "lrn", p.o.LRN, "host", other.Host)
	}
	p.heard(false)
}

// denounce writes the one alert about it: its name is that of the pair.
func (p *proof) denounce(ctx context.Context, other record.Presence) error {
	message := fmt.Sprintf("two servers go by LRN %d: %s works, and %s, which came later, does not", p.o.LRN, orElse(other.Host, "one"), orElse(p.me.Host, "another"))
	slog.Error(message)
	a := record.Alert{
		ID: fmt.Sprintf("twin-%d-%s-%s", p.o.LRN, other.Server, p.me.Server), Kind: record.AlertTwin, Servers: []int{p.o.LRN},
		Message: message, At: time.Now().UTC(),
	}
	return p.o.Store.Update(ctx, func(tx *state.KeyTx) error { return tx.Put(Keys().Alert(a.ID), a) })
}

// twin is whose worker stands in this one's place; "" is nobody's.
func (p *proof) twin() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.other
}

// decided waits until the presence was announced, or refused; false: ctx is done.
func (p *proof) decided(ctx context.Context) bool {
	select {
	case <-p.known:
		return true
	case <-ctx.Done():
		return false
	}
}

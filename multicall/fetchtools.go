package multicall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"bijou/multicall/home"
	"bijou/multicall/systemd"
	"bijou/state"
)

// obtain makes sure that the binary of that name is in the environment's folder, with
// its links, and that the folder's environment.yaml names it: a daemon that begins
// goes by that, and would go back to the old one otherwise. Whatever an earlier
// attempt that was cut off has left is completed.
func (h *handover) obtain(ctx context.Context, s *state.State, name string) error {
	e, err := home.Load(h.env.Dir)
	if err != nil {
		return err
	}
	if e.Tools == name && e.HasTools(name) {
		return nil
	}
	if err := h.fetch(ctx, s, name); err != nil {
		return err
	}
	return h.note(name)
}

// fetch brings the binary from the state. A folder that is shared with whoever
// ordered it was completed before that, and the state need not have it.
func (h *handover) fetch(ctx context.Context, s *state.State, name string) error {
	var kept state.Tools
	err := s.View(ctx, func(v *state.View) (err error) {
		kept, err = v.Tools(name)
		return err
	})
	if errors.Is(err, state.ErrNotFound) {
		if h.env.HasTools(name) {
			return nil
		}
		err = fmt.Errorf("there are no tools %q here, and the state has none: call upgrade-juju again", name)
	}
	if err != nil {
		return err
	}
	slog.Info("fetching another binary", "tools", name, "bytes", kept.Size)
	content, err := s.OpenBlob(ctx, kept.SHA256)
	if err != nil {
		return err
	}
	err = home.PutTools(h.env.Dir, home.Fetched{Name: name, SHA256: kept.SHA256, Links: names()}, content)
	return errors.Join(err, content.Close())
}

// note writes down what the host's daemons begin with from now on, and removes what
// they began with long ago.
func (h *handover) note(name string) error {
	e, err := home.Load(h.env.Dir)
	if err != nil {
		return err
	}
	e.Tools = name
	if err := e.Save(); err != nil {
		return err
	}
	return sweepTools(e, h.own)
}

// sweepTools removes the tools that the environment neither runs nor has run last,
// and that no process or service of this host begins with.
func sweepTools(e home.Environment, keep ...string) error {
	processes, services := commandLines(), systemd.Texts()
	return e.SweepTools(append(keep, e.Tools), func(folder string) bool {
		return strings.Contains(processes, folder+"/") || strings.Contains(services, folder+"/")
	})
}

// commandLines is what all processes of this host run, and how they were called.
func commandLines() string {
	var all strings.Builder
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		exe, _ := os.Readlink(filepath.Join(p, "exe"))
		all.WriteString(exe + "\n")
		if f, err := os.Open(filepath.Join(p, "cmdline")); err == nil {
			line, _ := io.ReadAll(io.LimitReader(f, 64<<10))
			f.Close()
			all.Write(line)
			all.WriteString("\n")
		}
	}
	return all.String()
}

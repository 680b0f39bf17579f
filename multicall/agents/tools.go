package agents

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

// ensureTools makes sure that the binary is in the environment's directory with its links, and that
// environment.yaml names it. A daemon that starts reads that name, and would otherwise go back to the old
// binary. ensureTools completes an interrupted attempt.
func (h *handover) ensureTools(ctx context.Context, s *state.State, name string) error {
	e, err := home.Load(h.env.Dir)
	if err != nil {
		return err
	}
	if e.Tools == name && e.HasTools(name) {
		return nil
	}
	if err := h.fetchTools(ctx, s, name); err != nil {
		return err
	}

	return h.recordTools(name)
}

// fetchTools fetches the binary from the state. If the directory is shared with the host of the upgrade,
// the binary is in it already, and need not be in the state.
func (h *handover) fetchTools(ctx context.Context, s *state.State, name string) error {
	kept, err := state.Read(ctx, s, func(v *state.View) (state.Tools, error) { return v.Tools(name) })
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

	err = home.PutTools(h.env.Dir, home.Fetched{Name: name, SHA256: kept.SHA256, Links: h.links}, content)
	return errors.Join(err, content.Close())
}

// recordTools records the binary that agents run. It removes older binaries, but none that this process
// runs.
func (h *handover) recordTools(name string) error {
	e, err := home.Load(h.env.Dir)
	if err != nil {
		return err
	}

	e.Tools = name
	if err := e.Save(); err != nil {
		return err
	}

	return SweepTools(e, h.ownTools)
}

// SweepTools removes the environment's unused tools. It keeps the environment's own tools, those named in
// keep, and all that a process or a service of this host uses.
func SweepTools(e home.Environment, keep ...string) error {
	processes := listCommandLines()
	services := systemd.ReadUnitFiles()
	return e.SweepTools(append(keep, e.Tools), func(folder string) bool {
		return strings.Contains(processes, folder+"/") || strings.Contains(services, folder+"/")
	})
}

// listCommandLines returns the executables and arguments of all processes of this host.
func listCommandLines() string {
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

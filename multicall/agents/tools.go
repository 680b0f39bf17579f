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

// ensureTools makes sure that the binary is in the environment's directory with its symlinks, and that
// environment.yaml names it. A starting daemon reads that name, and would otherwise return to the old binary.
// ensureTools completes an interrupted attempt.
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

// fetchTools fetches the binary from the state. If the directory is shared with the host of the upgrade, it
// already contains the binary, which need not be in the state.
func (h *handover) fetchTools(ctx context.Context, s *state.State, name string) error {
	kept, err := state.Read(ctx, s, func(v *state.View) (state.Tools, error) { return v.Tools(name) })
	if errors.Is(err, state.ErrNotFound) && h.env.HasTools(name) {
		return nil
	}
	if errors.Is(err, state.ErrNotFound) {
		return fmt.Errorf("the binary %q is neither on this host nor in the state: run juju upgrade-model again", name)
	}
	if err != nil {
		return err
	}

	slog.Info("fetching a different binary", "tools", name, "bytes", kept.Size)
	content, err := s.OpenBlob(ctx, kept.SHA256)
	if err != nil {
		return err
	}

	err = home.PutTools(h.env.Dir, home.Fetched{Name: name, SHA256: kept.SHA256, Links: h.links}, content)
	return errors.Join(err, content.Close())
}

// recordTools records the binary that agents must run. It removes all other binaries that are not in use on
// this host, except its own.
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

// SweepTools removes the environment's unused tools. It keeps the environment's own tools, the tools in keep,
// and tools that a process or a service on this host uses.
func SweepTools(e home.Environment, keep ...string) error {
	processes := listCommandLines()
	services := systemd.ReadUnitFiles()
	return e.SweepTools(append(keep, e.Tools), func(folder string) bool {
		return strings.Contains(processes, folder+"/") || strings.Contains(services, folder+"/")
	})
}

// listCommandLines returns the executables and arguments of all processes on this host.
func listCommandLines() string {
	var all strings.Builder
	// Processes can end at any time, so errors are ignored.
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

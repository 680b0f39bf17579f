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

// ensureTools makes sure that the binary called name is in the environment's directory with its symlinks, and that
// environment.yaml names it. A starting daemon runs the binary that environment.yaml names. If an earlier call was
// interrupted before environment.yaml named the binary, the next call completes it. After ensureTools has written
// environment.yaml, it also removes unused binaries.
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

// fetchTools copies the binary from the state to the environment's directory. The binary need not be in the state if the
// directory already contains it, as when the host on which the upgrade was ordered shares the directory.
func (h *handover) fetchTools(ctx context.Context, s *state.State, name string) error {
	record, err := state.Read(ctx, s, func(v *state.View) (state.Tools, error) { return v.Tools(name) })
	if errors.Is(err, state.ErrNotFound) && h.env.HasTools(name) {
		return nil
	}
	if errors.Is(err, state.ErrNotFound) {
		return fmt.Errorf("the binary %q is neither on this host nor in the state: run juju upgrade-model again", name)
	}
	if err != nil {
		return err
	}

	slog.Info("fetching a different binary", "tools", name, "bytes", record.Size)
	content, err := s.OpenBlob(ctx, record.SHA256)
	if err != nil {
		return err
	}

	err = home.PutTools(h.env.Dir, home.Fetched{Name: name, SHA256: record.SHA256, Links: h.links}, content)
	return errors.Join(err, content.Close())
}

// recordTools records in environment.yaml the binary that agents must run. It then removes the other binaries that no
// process or service on this host uses. It keeps the binary of this process.
func (h *handover) recordTools(name string) error {
	e, err := home.Load(h.env.Dir)
	if err != nil {
		return err
	}

	e.Tools = name
	if err := e.Save(); err != nil {
		return err
	}

	return SweepTools(e, h.ownTools) // keeps h.ownTools and e.Tools
}

// SweepTools removes the environment's unused tools. It keeps the tools that environment.yaml names, the tools in keep,
// and the tools that a process or a service on this host uses.
func SweepTools(e home.Environment, keep ...string) error {
	processes := listCommandLines()
	services := systemd.ReadUnitFiles()
	return e.SweepTools(append(keep, e.Tools), func(folder string) bool {
		return strings.Contains(processes, folder+"/") || strings.Contains(services, folder+"/")
	})
}

// listCommandLines returns the executables and arguments of all processes on this host as one text, in which SweepTools
// searches for paths. It leaves out the arguments of a process beyond 64 KiB.
func listCommandLines() string {
	var lines strings.Builder
	// Processes can end at any time, so errors are ignored.
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		executable, _ := os.Readlink(filepath.Join(proc, "exe"))
		lines.WriteString(executable + "\n")

		f, err := os.Open(filepath.Join(proc, "cmdline"))
		if err != nil {
			continue
		}
		arguments, _ := io.ReadAll(io.LimitReader(f, 64<<10))
		f.Close()
		lines.Write(arguments)
		lines.WriteString("\n")
	}

	return lines.String()
}

package agents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bijou/multicall/daemon"
	"bijou/multicall/home"
	"bijou/provision/provider"
	"bijou/state"
	"bijou/state/backoff"
	"bijou/state/gateway"
)

// gatewayRole serves the state to machines that cannot open it themselves. Each machine has its own socket,
// in a directory that only this machine can see. A machine that was started with a socket keeps the socket
// until the machine is dead, even if the environment's settings change.
type gatewayRole struct {
	state     *state.State
	dir       string // the environment's directory
	gateway   *gateway.Gateway
	endpoints map[string]*gateway.Endpoint // by machine
}

// newGatewayRole returns the role that serves the state to machines. It returns nil unless the state is a file,
// since machines can open any other state themselves. It also returns nil if the environment has no directory for
// the sockets.
func newGatewayRole(s *state.State, e home.Environment) daemon.Role {
	if e.Dir == "" || !strings.HasPrefix(e.State, "sqlite:") {
		return nil
	}

	return func(ctx context.Context) error {
		g, err := gateway.New(s.Store(), gateway.Table{}) // the table in package access limits each machine
		if err != nil {
			return fmt.Errorf("cannot serve the state: %w", err)
		}
		g.ServeSecrets(e.SecretKeys())
		r := &gatewayRole{state: s, dir: e.Dir, gateway: g, endpoints: map[string]*gateway.Endpoint{}}
		defer r.close()
		r.run(ctx)
		return nil
	}
}

// run serves the state until ctx is done. If a round fails, it tries again. It logs an error once, even if the next
// rounds fail with the same error, and does not log ErrHistoryLost. After ErrStoreGone, it only waits for ctx.
func (r *gatewayRole) run(ctx context.Context) {
	lastLogged := ""
	for ctx.Err() == nil {
		err := r.runRound(ctx)
		if errors.Is(err, state.ErrStoreGone) {
			break // the other roles report this error, and end the process
		}
		if err == nil {
			lastLogged = ""
			continue
		}

		isNew := err.Error() != lastLogged
		// After ErrHistoryLost, the next round reads all machines again, so nothing is missed.
		isNotable := ctx.Err() == nil && !errors.Is(err, state.ErrHistoryLost)
		if isNew && isNotable {
			lastLogged = err.Error()
			slog.Warn("cannot serve the state to all machines; trying again", "error", err)
		}
		_ = backoff.Sleep(ctx, daemon.RetryInterval)
	}

	<-ctx.Done()
}

// wanted has the machines that need a socket, at one revision.
type wanted struct {
	revision int64
	confined bool     // new machines get a socket; otherwise only machines that already have one keep it
	machines []string // without machine 0 and dead machines
}

// runRound creates the sockets that the machines need, and removes those of all other machines. Then it waits for a
// change.
func (r *gatewayRole) runRound(ctx context.Context) error {
	w, err := state.Read(ctx, r.state, readWanted)
	if err != nil {
		return err
	}
	if err := r.reconcile(ctx, w); err != nil {
		return err
	}

	return r.state.Await(ctx, w.revision, state.WatchEnvironment(), state.WatchMachines())
}

// readWanted reads which machines need a socket. Machine 0 needs none, since it uses the store directly, and dead
// machines need none. A machine whose record does not decode keeps its socket, since it may be alive.
func readWanted(v *state.View) (w wanted, err error) {
	if w.revision, err = v.Revision(); err != nil {
		return w, err
	}
	env, err := v.Environment()
	if err != nil {
		return w, err
	}

	w.confined = env.IsConfined()
	ids, err := v.MachineIDs()
	if err != nil {
		return w, err
	}
	machines, err := v.Machines()
	if err != nil {
		return w, err
	}

	// A machine whose record does not decode is in ids, but not in machines.
	dead := map[string]bool{}
	for _, m := range machines {
		dead[m.ID] = m.Life == state.Dead
	}
	for _, id := range ids {
		if id != "0" && !dead[id] {
			w.machines = append(w.machines, id)
		}
	}

	return w, nil
}

// reconcile creates and serves the sockets of the machines in w, and removes the sockets of all other machines. If the
// environment is not confined, it creates no sockets for machines that have none yet.
func (r *gatewayRole) reconcile(ctx context.Context, w wanted) error {
	existing, err := listGateways(r.dir)
	if err != nil {
		return err
	}

	for _, id := range existing {
		if !slices.Contains(w.machines, id) {
			if err := r.remove(ctx, id); err != nil {
				return err
			}
		}
	}

	for _, id := range w.machines {
		if !w.confined && !slices.Contains(existing, id) {
			continue
		}
		if err := r.add(id); err != nil {
			return err
		}
	}

	return nil
}

// add creates or updates the directory of a machine's gateway. It then serves the socket in this directory, unless this
// process already serves the socket.
func (r *gatewayRole) add(id string) error {
	if err := provider.MakeGatewayDir(r.dir, id); err != nil {
		return err
	}
	if r.endpoints[id] != nil {
		return nil
	}

	endpoint, err := r.gateway.Listen(gateway.Agent(id), provider.GatewaySocket(r.dir, id))
	if err != nil {
		return err
	}

	slog.Info("serving the state to a machine", "machine", id)
	r.endpoints[id] = endpoint
	return nil
}

// remove removes a machine's socket and revokes the machine's leases, which ends the presences and leaderships of the
// machine. After an error, the caller can call remove again.
func (r *gatewayRole) remove(ctx context.Context, id string) error {
	if e := r.endpoints[id]; e != nil {
		e.Close()
		delete(r.endpoints, id)
	}
	if err := r.gateway.RevokeAll(ctx, gateway.Agent(id)); err != nil {
		return err
	}
	if err := os.RemoveAll(provider.GatewayDir(r.dir, id)); err != nil {
		return fmt.Errorf("cannot remove the gateway of machine %s: %w", id, err)
	}

	slog.Info("no longer serving the state to a machine", "machine", id)
	return nil
}

// close stops serving. It leaves the sockets' directories and the leases to the next process.
func (r *gatewayRole) close() {
	for _, e := range r.endpoints {
		e.Close()
	}
}

// listGateways returns the machines that have a directory for their socket below dir, the environment's directory.
// It ignores files whose names are not machines' ids.
func listGateways(dir string) (machines []string, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, provider.GatewayFolder))
	// The directory is missing until the first gateway is created.
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot list gateways: %w", err)
	}

	for _, e := range entries {
		if provider.CheckMachine(e.Name()) == nil {
			machines = append(machines, e.Name())
		}
	}
	return machines, nil
}

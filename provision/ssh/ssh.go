package ssh

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"bijou/provision/provider"
)

// Provider makes hosts of a pool the machines of one environment. What it must remember (which host
// is which machine) is in the environment's folder, and on the hosts.
type Provider struct {
	env provider.Environment
	log *slog.Logger

	root          string        // on hosts: where environments lie
	systemdFolder string        // on hosts: a folder that is there if systemd runs
	hostTimeout   time.Duration // how long Instances waits for a host
	retryInterval time.Duration // how long it leaves one alone that did not answer
	pollTimeout   time.Duration // how long Instances waits in all: less than a plugin may take
	dialContext   func(ctx context.Context, network, address string) (net.Conn, error)

	machineLocks sync.Map // *sync.Mutex by machine: one start or stop at a time
	mu           sync.Mutex
	silentSince  map[string]time.Time // hosts that did not answer, and when that was
}

// Name is the provider's name.
const Name = "ssh"

// settings are those of the environment's configuration that the provider takes:
//
//	pool           hosts, as a YAML or JSON list, or the file that holds one
//	known-hosts    the file of hosts' keys; default ~/.ssh/known_hosts
//	identity       a private key's file; default the ssh-agent and ~/.ssh/id_*
//	password-file  a file of mode 0600
func settings() []string { return []string{"identity", "known-hosts", "password-file", "pool"} }

// New returns the provider for the environment. An unknown setting is refused; what a setting says
// is looked at when it is needed.
func New(e provider.Environment) (*Provider, error) {
	for _, key := range slices.Sorted(maps.Keys(e.Config)) {
		if !slices.Contains(settings(), key) {
			return nil, fmt.Errorf("%s has no setting %q: there are %s", Name, key, strings.Join(settings(), ", "))
		}
	}
	return &Provider{
		env: e, log: slog.Default(), root: "/var/lib/bijou", systemdFolder: "/run/systemd/system",
		hostTimeout: 5 * time.Second, retryInterval: 30 * time.Second, pollTimeout: 20 * time.Second, silentSince: map[string]time.Time{},
		dialContext: new(net.Dialer).DialContext,
	}, nil
}

// Capabilities reports that machines are hosts of their own.
func (*Provider) Capabilities(context.Context) (provider.Capabilities, error) {
	return provider.Capabilities{Name: Name, Isolated: true, Remote: true}, nil
}

func (p *Provider) remoteDir() string { return p.root + "/" + p.env.UUID }

// The binary that is copied has the same name for the agent's service.
func (p *Provider) unitName(machine string) string {
	return "bijou-machine-" + p.env.Name + "@" + machine + ".service"
}

// A machine is started or stopped by one caller of this process at a time.
func (p *Provider) lockMachine(machine string) (done func()) {
	lock := p.machineLock(machine)
	lock.Lock()
	return lock.Unlock
}

func (p *Provider) machineLock(machine string) *sync.Mutex {
	lock, _ := p.machineLocks.LoadOrStore(machine, &sync.Mutex{})
	return lock.(*sync.Mutex)
}

// The binary is that of this process.

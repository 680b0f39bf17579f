// Package ssh is the provider for which a machine is a host that is there already, and reached by
// ssh: from a pool, or named by the operator. The agent is copied there, and runs as a service.
//
// It never makes hosts, and never trusts one whose key nobody has vouched for. A host is one
// machine's at a time: a mark on the host itself says whose, so that no two environments, and no
// two provisioners, share one by accident. It imports provision/provider, state/constraints and
// state/osutil only; multicall chooses it.
package ssh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
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

// settings returns the keys of the environment's configuration that the provider reads:
//
//	pool           hosts, as a YAML or JSON list, or the file that holds one
//	known-hosts    the file of hosts' keys; default ~/.ssh/known_hosts
//	identity       a private key's file; default the ssh-agent and ~/.ssh/id_*
//	password-file  a file of mode 0600
func settings() []string { return []string{"identity", "known-hosts", "password-file", "pool"} }

// CheckSettings refuses settings that somebody gives and the provider does not have.
func CheckSettings(config map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if !slices.Contains(settings(), key) {
			return fmt.Errorf("%s has no setting %q: there are %s", Name, key, strings.Join(settings(), ", "))
		}
	}
	return nil
}

// New returns the provider for the environment. It ignores unknown settings, which a newer binary can have
// set, and checks the others when it needs them.
func New(e provider.Environment) (*Provider, error) {
	return &Provider{
		env:           e,
		log:           slog.Default(),
		root:          "/var/lib/bijou",
		systemdFolder: "/run/systemd/system",
		hostTimeout:   5 * time.Second,
		retryInterval: 30 * time.Second,
		pollTimeout:   20 * time.Second,
		silentSince:   map[string]time.Time{},
		dialContext:   new(net.Dialer).DialContext,
	}, nil
}

// Capabilities reports that machines are hosts of their own.
func (*Provider) Capabilities(context.Context) (provider.Capabilities, error) {
	return provider.Capabilities{Name: Name, Isolated: true, Remote: true}, nil
}

func (p *Provider) remoteDir() string { return p.root + "/" + p.env.UUID }

// unitName returns the name of the agent's service, which the copied binary uses, too.
func (p *Provider) unitName(machine string) string {
	return "bijou-machine-" + p.env.Name + "@" + machine + ".service"
}

// lockMachine makes the callers of this process start and stop a machine one at a time.
func (p *Provider) lockMachine(machine string) (done func()) {
	lock := p.machineLock(machine)
	lock.Lock()
	return lock.Unlock
}

func (p *Provider) machineLock(machine string) *sync.Mutex {
	lock, _ := p.machineLocks.LoadOrStore(machine, &sync.Mutex{})
	return lock.(*sync.Mutex)
}

// Client describes how the system's own ssh and scp reach an instance.
type Client struct {
	Destination string   // user@host
	Options     []string // that ssh and scp understand alike
	Dir         string   // the environment's folder on the host
}

// Client returns the options for an ssh client that reaches an instance. They name this provider's keys,
// and only the host keys that it trusts. The user must type a password, since ssh reads none from files.
func (p *Provider) Client(instance string) (Client, error) {
	t, machine, err := parseID(instance)
	if err != nil {
		return Client{}, err
	}
	if t, err = p.withKnownKey(t, machine); err != nil {
		return Client{}, err
	}

	known, err := p.knownHostsFile()
	if err != nil {
		return Client{}, err
	}

	kept := p.keyPath(t)
	if _, err := os.Stat(kept); err == nil && t.Fingerprint != "" {
		known = kept
	}
	c := Client{
		Destination: t.User + "@" + t.Host,
		Dir:         p.remoteDir(),
		Options: []string{
			"-o", "Port=" + t.Port,
			"-o", "StrictHostKeyChecking=yes",
			"-o", "UserKnownHostsFile=" + known,
			"-o", "ServerAliveInterval=10",
		},
	}

	if named := p.env.Config["identity"]; named != "" {
		path, err := expandPath(named)
		if err != nil {
			return Client{}, err
		}
		c.Options = append(c.Options, "-o", "IdentityFile="+path)
	}

	return c, nil
}

// target is a host, and how it is reached.
type target struct {
	User, Host  string
	Port        string
	Fingerprint string // of the host's key, "SHA256:..."; empty: known_hosts vouches for it
}

var errTarget = errors.New("want USER@HOST, USER@HOST:PORT, or either with #SHA256:FINGERPRINT of the host's key")

// parseTarget parses USER@HOST[:PORT][#FINGERPRINT].
func parseTarget(text string) (target, error) {
	where, fingerprint, pinned := strings.Cut(text, "#")
	user, address, ok := strings.Cut(where, "@")
	t := target{User: user, Port: "22", Fingerprint: fingerprint}
	t.Host = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	if host, port, err := net.SplitHostPort(address); err == nil {
		t.Host = host
		t.Port = port
	}

	port, err := strconv.ParseUint(t.Port, 10, 16)
	odd := strings.ContainsFunc(where, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`/'"\`, r)
	})

	switch {
	case !ok || user == "" || t.Host == "" || odd || err != nil || port == 0,
		user[0] == '-' || t.Host[0] == '-' || strings.ContainsAny(t.Host, "@[]"):
		return target{}, fmt.Errorf("cannot parse host %q: %w", text, errTarget)
	case pinned && !strings.HasPrefix(fingerprint, "SHA256:"):
		return target{}, fmt.Errorf(
			"cannot use fingerprint %q of host %q: want SHA256:..., as ssh-keygen -l prints it",
			fingerprint, where,
		)
	}

	return t, nil
}

func (t target) address() string { return net.JoinHostPort(t.Host, t.Port) }

// String returns USER@HOST:PORT, without the fingerprint.
func (t target) String() string { return t.User + "@" + t.address() }

func parseID(id string) (t target, machine string, err error) {
	where, machine, ok := strings.Cut(id, "/")
	t, err = parseTarget(where)
	if err != nil || !ok {
		return target{}, "", fmt.Errorf("%q is not an instance of this provider", id)
	}
	return t, machine, provider.CheckMachine(machine)
}

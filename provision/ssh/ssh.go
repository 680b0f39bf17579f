// Package ssh is a provider that uses existing hosts as machines. The hosts are listed in a pool or named
// by the operator, and reached by SSH. The agent is copied to the host and runs there as a service.
//
// The provider never creates hosts, and trusts a host only if the operator has confirmed its key. A host is
// only one machine at a time. A mark on the host itself names that machine, so that two environments or
// provisioners never share a host by accident.
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

// Provider uses hosts in a pool as the machines of one environment. It records which host is which machine in
// the environment's directory and on the hosts.
type Provider struct {
	env provider.Environment
	log *slog.Logger

	root          string        // the directory of environments on hosts
	systemdFolder string        // a directory that exists on hosts where systemd is running
	hostTimeout   time.Duration // how long Instances waits for one host
	retryInterval time.Duration // how long Instances skips a host that did not answer
	pollTimeout   time.Duration // limits Instances; shorter than the timeout of a plugin's call
	dialContext   func(ctx context.Context, network, address string) (net.Conn, error)

	machineLocks sync.Map // a *sync.Mutex for each machine, held by its start or stop
	mu           sync.Mutex
	silentAt     map[string]time.Time // the time of the last attempt, for each host that did not answer it
}

// Name is the provider's name.
const Name = "ssh"

// settings returns the keys of the environment's configuration that the provider reads:
//
//	pool           a YAML or JSON list of hosts, or the path of a file with such a list
//	known-hosts    a file with keys of hosts; default ~/.ssh/known_hosts
//	identity       a file with a private key; default the ssh-agent and ~/.ssh/id_*
//	password-file  a file of mode 0600 with a password
func settings() []string { return []string{"identity", "known-hosts", "password-file", "pool"} }

// CheckSettings returns an error if there is a setting that the provider does not have.
func CheckSettings(config map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if !slices.Contains(settings(), key) {
			return fmt.Errorf("%s has no setting %q; the settings are: %s", Name, key, strings.Join(settings(), ", "))
		}
	}
	return nil
}

// New returns the provider for the environment. It ignores unknown settings, which a newer version may have
// set. It checks the other settings when it needs them. The error is always nil, and is there for callers
// that create different providers in the same way.
func New(e provider.Environment) (*Provider, error) {
	return &Provider{
		env:           e,
		log:           slog.Default(),
		root:          "/var/lib/bijou",
		systemdFolder: "/run/systemd/system",
		hostTimeout:   5 * time.Second,
		retryInterval: 30 * time.Second,
		pollTimeout:   20 * time.Second,
		silentAt:      map[string]time.Time{},
		dialContext:   new(net.Dialer).DialContext,
	}, nil
}

// Capabilities reports that machines are separate hosts.
func (*Provider) Capabilities(context.Context) (provider.Capabilities, error) {
	return provider.Capabilities{Name: Name, Isolated: true, Remote: true}, nil
}

// remoteDir returns the environment's directory on hosts.
func (p *Provider) remoteDir() string { return p.root + "/" + p.env.UUID }

// unitName returns the name of the agent's service. The copied binary uses the same name.
func (p *Provider) unitName(machine string) string {
	return "bijou-machine-" + p.env.Name + "@" + machine + ".service"
}

// lockMachine waits until no start or stop of the machine is running in this process, and blocks others until
// the caller calls done.
func (p *Provider) lockMachine(machine string) (done func()) {
	lock := p.machineLock(machine)
	lock.Lock()
	return lock.Unlock
}

// machineLock returns the lock of the machine's starts and stops in this process.
func (p *Provider) machineLock(machine string) *sync.Mutex {
	lock, _ := p.machineLocks.LoadOrStore(machine, &sync.Mutex{})
	return lock.(*sync.Mutex)
}

// Client contains the settings with which the system's own ssh and scp reach an instance.
type Client struct {
	Destination string   // user@host
	Options     []string // options of both ssh and scp
	Dir         string   // the environment's directory on the host
}

// Client returns the settings with which ssh and scp reach an instance: the key file of ssh.identity, if set,
// and the trusted host keys. ssh and scp cannot use ssh.password-file, so the user must type the password.
func (p *Provider) Client(instance string) (Client, error) {
	t, machine, err := parseID(instance)
	if err != nil {
		return Client{}, err
	}
	t, err = p.withKnownKey(t, machine)
	if err != nil {
		return Client{}, err
	}

	keys, err := p.trustedKeysFile(t)
	if err != nil {
		return Client{}, err
	}

	c := Client{
		Destination: t.User + "@" + t.Host,
		Dir:         p.remoteDir(),
		Options: []string{
			"-o", "Port=" + t.Port,
			"-o", "StrictHostKeyChecking=yes",
			"-o", "UserKnownHostsFile=" + keys,
			"-o", "ServerAliveInterval=10",
		},
	}

	if identity := p.env.Config["identity"]; identity != "" {
		path, err := expandPath(identity)
		if err != nil {
			return Client{}, err
		}
		c.Options = append(c.Options, "-o", "IdentityFile="+path)
	}

	return c, nil
}

// trustedKeysFile returns the path of a file in the format of known_hosts, with the keys that ssh can accept
// from the target. For a target with a fingerprint, this is the file with its saved key, if there is one, since
// ssh cannot check a fingerprint itself. Otherwise it is the file of known hosts.
func (p *Provider) trustedKeysFile(t target) (string, error) {
	if t.Fingerprint != "" {
		saved := p.keyPath(t)
		if _, err := os.Stat(saved); err == nil {
			return saved, nil
		}
		// The key is not saved yet. ssh can still accept a key in the file of known hosts.
	}

	return p.knownHostsFile()
}

// target is a host, and how to reach it.
type target struct {
	User, Host string
	Port       string
	// Fingerprint is that of the host's key, "SHA256:...". If it is empty, the key must be in known_hosts.
	Fingerprint string
}

// errTarget is the cause of an error about a text that does not name a host.
var errTarget = errors.New("want USER@HOST or USER@HOST:PORT, then optionally #SHA256:FINGERPRINT of the host's key")

// parseTarget parses USER@HOST[:PORT][#FINGERPRINT]. The port is 22 if none is given. It refuses words that ssh
// or a shell would not read as a user or a host, such as an option. It also refuses a fingerprint that does not
// begin with SHA256:.
func parseTarget(text string) (target, error) {
	where, fingerprint, hasFingerprint := strings.Cut(text, "#")
	user, address, hasUser := strings.Cut(where, "@")

	// Without a port, an IPv6 address can be in brackets.
	t := target{User: user, Port: "22", Fingerprint: fingerprint}
	t.Host = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	if host, port, err := net.SplitHostPort(address); err == nil {
		t.Host = host
		t.Port = port
	}

	port, portErr := strconv.ParseUint(t.Port, 10, 16)
	isPort := portErr == nil && port != 0
	isUser := hasUser && user != "" && user[0] != '-'
	isHost := t.Host != "" && t.Host[0] != '-' && !strings.ContainsAny(t.Host, "@[]")
	hasUnsafe := strings.ContainsFunc(where, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`/'"\`, r)
	})

	if !isUser || !isHost || !isPort || hasUnsafe {
		return target{}, fmt.Errorf("cannot parse host %q: %w", text, errTarget)
	}
	if hasFingerprint && !strings.HasPrefix(fingerprint, "SHA256:") {
		return target{}, fmt.Errorf(
			"cannot use fingerprint %q of host %q: want SHA256:..., as ssh-keygen -l prints it",
			fingerprint, where,
		)
	}

	return t, nil
}

// address returns HOST:PORT, with an IPv6 address in brackets.
func (t target) address() string { return net.JoinHostPort(t.Host, t.Port) }

// String returns USER@HOST:PORT, without the fingerprint.
func (t target) String() string { return t.User + "@" + t.address() }

// parseID parses the ID of an instance, USER@HOST:PORT/MACHINE. It returns an error if the ID has a different
// form, or if MACHINE is not the ID of a machine that can be started.
func parseID(id string) (t target, machine string, err error) {
	where, machine, ok := strings.Cut(id, "/")
	t, err = parseTarget(where)
	if err != nil || !ok {
		return target{}, "", fmt.Errorf("%q is not an instance of this provider", id)
	}
	return t, machine, provider.CheckMachine(machine)
}

package ssh

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// target is a host, and how it is reached.
type target struct {
	User, Host  string
	Port        string
	Fingerprint string // of the host's key, "SHA256:..."; empty: known_hosts vouches for it
}

var errTarget = errors.New("want USER@HOST, USER@HOST:PORT, or either with #SHA256:FINGERPRINT of the host's key")

func parseTarget(text string) (target, error) {
	where, fingerprint, pinned := strings.Cut(text, "#")
	user, address, ok := strings.Cut(where, "@")
	t := target{User: user, Port: "22", Fingerprint: fingerprint}
	t.Host = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	if host, port, err := net.SplitHostPort(address); err == nil {
		t.Host, t.Port = host, port
	}
	port, err := strconv.ParseUint(t.Port, 10, 16)
	odd := strings.ContainsFunc(where, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`/'"\`, r) })
	switch {
	case !ok || user == "" || t.Host == "" || odd || err != nil || port == 0:
		return target{}, fmt.Errorf("cannot understand host %q: %w", text, errTarget)
	case user[0] == '-' || t.Host[0] == '-' || strings.ContainsAny(t.Host, "@[]"):
		return target{}, fmt.Errorf("cannot understand host %q: %w", text, errTarget)
	case pinned && !strings.HasPrefix(fingerprint, "SHA256:"):
		return target{}, fmt.Errorf("cannot use fingerprint %q of host %q: want SHA256:..., as ssh-keygen -l prints it", fingerprint, where)
	}
	return t, nil
}

func (t target) address() string { return net.JoinHostPort(t.Host, t.Port) }

// String names the host, without the fingerprint.
func (t target) String() string { return t.User + "@" + t.address() }

func instanceID(t target, machine string) string { return t.String() + "/" + machine }

func parseID(id string) (t target, machine string, err error) {
	where, machine, ok := strings.Cut(id, "/")
	if t, err = parseTarget(where); err != nil || !ok {
		return target{}, "", fmt.Errorf("%q is no instance of this provider", id)
	}
	return t, machine, checkID(machine)
}

func checkID(machine string) error {
	if n, err := strconv.Atoi(machine); err != nil || n < 1 || strconv.Itoa(n) != machine {
		return fmt.Errorf("%q is not the id of a machine that can be started", machine)
	}
	return nil
}

package nspawn

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"
)

// environmentRecord is what a container needs to know of environment.yaml.
type environmentRecord struct {
	State string `yaml:"state"`
	Tools string `yaml:"tools"`
}

// readEnvironment reads environment.yaml; one that is not there says nothing.
func (p *Provider) readEnvironment() (r environmentRecord, err error) {
	data, err := os.ReadFile(filepath.Join(p.env.Dir, "environment.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = yaml.Unmarshal(data, &r)
	}
	if err != nil {
		return r, fmt.Errorf("cannot read the environment's record: %w", err)
	}
	return r, nil
}

// stateFolder is the folder of this host's in which a container's agent must be able
// to reach the state: the file's, or the socket's. "" is none: it is a server's.
func (r environmentRecord) stateFolder() (string, error) {
	scheme, rest, _ := strings.Cut(r.State, ":")
	switch scheme {
	case "sqlite":
		return filepath.Dir(rest), nil
	case "etcd+unix":
		u, err := url.Parse(r.State)
		if err != nil || !filepath.IsAbs(u.Path) {
			return "", errors.New("cannot tell where the socket of the environment's state is")
		}
		return filepath.Dir(u.Path), nil
	}
	hosts, _, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
	for host := range strings.SplitSeq(hosts, ",") {
		if !isLoopback(host) {
			return "", nil
		}
	}
	return "", fmt.Errorf("the environment's state is at %s, which is another place in a container: "+
		"let etcd listen at an address of this host, and bootstrap with --state etcd://ADDRESS:PORT", hosts)
}

// isLoopback tells if HOST:PORT is of whoever asks, or nothing at all.
func isLoopback(hostPort string) bool {
	host := hostPort
	if at := strings.LastIndexByte(hostPort, ':'); at >= 0 {
		host = hostPort[:at]
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && a.IsLoopback()
}

// look finds out what the agent runs, and where its state is.
func (l *launch) look() error {
	r, err := l.provider.readEnvironment()
	if err != nil {
		return err
	}
	if r.State != "" {
		if l.state, err = r.stateFolder(); err != nil {
			return err
		}
	}
	l.tools = filepath.Join(l.provider.env.Dir, "tools", cmp.Or(l.spec.Tools, r.Tools))
	return nil
}

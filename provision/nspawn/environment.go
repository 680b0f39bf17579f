package nspawn

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
)

// environmentRecord holds what a container needs of environment.yaml.
type environmentRecord struct {
	State string `yaml:"state"`
	Tools string `yaml:"tools"`
}

func (p *Provider) readEnvironment() (r environmentRecord, err error) {
	if err := p.env.ReadRecord(&r); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if path, file := strings.CutPrefix(r.State, "sqlite:"); file && !filepath.IsAbs(path) {
		r.State = "sqlite:" + filepath.Join(p.env.Dir, path)
	}
	return r, nil
}

// stateFolders returns the folders of this host in which a container's agent must be able to reach
// the state: the file's, or the sockets'. There are none where servers have it.
func (r environmentRecord) stateFolders() ([]string, error) {
	scheme, rest, _ := strings.Cut(r.State, ":")
	rest, _, _ = strings.Cut(strings.TrimPrefix(rest, "//"), "?")
	switch scheme {
	case "", "sqlite":
		return parentFolders(rest), nil
	case "etcd+unix":
		return parentFolders(strings.Split(rest, ",")...), nil
	}
	hosts, _, _ := strings.Cut(rest, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		if !isLoopback(host) {
			return nil, nil
		}
	}
	return nil, fmt.Errorf("the environment's state is at %s, which is another place in a container: "+
		"let etcd listen at an address of this host, and bootstrap with --state etcd://ADDRESS:PORT", hosts)
}

func parentFolders(paths ...string) (folders []string) {
	for _, path := range paths {
		if folder := filepath.Dir(path); filepath.IsAbs(path) && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// An address that names nothing at all is none.
func isLoopback(hostPort string) bool {
	host := hostPort
	if at := strings.LastIndexByte(hostPort, ':'); at >= 0 {
		host = hostPort[:at]
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && a.IsLoopback()
}

func (l *launch) resolveAgent() error {
	r, err := l.provider.readEnvironment()
	if err != nil {
		return err
	}
	if l.stateFolders, err = r.stateFolders(); err != nil {
		return err
	}
	l.tools = filepath.Join(l.provider.env.Dir, "tools", cmp.Or(l.spec.Tools, r.Tools))
	return nil
}

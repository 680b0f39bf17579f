package ssh

import (
	"os"
)

// Client describes how the system's own ssh and scp reach an instance.
type Client struct {
	Destination string   // user@host
	Options     []string // that ssh and scp understand alike
	Dir         string   // the environment's folder on the host
}

// Client returns how to reach an instance: with the keys that this provider logs in with, and the
// host keys that it trusts, and no others. A password is asked for: ssh takes none from files.
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
	c := Client{Destination: t.User + "@" + t.Host, Dir: p.remoteDir(), Options: []string{
		"-o", "Port=" + t.Port, "-o", "StrictHostKeyChecking=yes", "-o", "UserKnownHostsFile=" + known, "-o", "ServerAliveInterval=10",
	}}
	if named := p.env.Config["identity"]; named != "" {
		path, err := expandPath(named)
		if err != nil {
			return Client{}, err
		}
		c.Options = append(c.Options, "-o", "IdentityFile="+path)
	}
	return c, nil
}

package ssh

import (
	"fmt"
	"os"
	"strings"

	"gopkg.in/yaml.v3"
)

// member is a host of the pool.
type member struct {
	target   target
	hardware string // facts, as constraints are written; what it leaves open is looked up on the host
}

// UnmarshalYAML reads a host: its name alone, or with facts.
func (m *member) UnmarshalYAML(node *yaml.Node) error {
	entry := struct {
		Host        string `yaml:"host"`
		Fingerprint string `yaml:"fingerprint"`
		Hardware    string `yaml:"hardware"`

		Unknown map[string]any `yaml:",inline"` // which would be passed over in silence
	}{Host: node.Value}
	if node.Kind != yaml.ScalarNode {
		if err := node.Decode(&entry); err != nil {
			return err
		}
	}
	for key := range entry.Unknown {
		return fmt.Errorf("unknown key %q of a host: there are host, fingerprint and hardware", key)
	}
	if entry.Fingerprint != "" {
		entry.Host += "#" + entry.Fingerprint
	}
	t, err := parseTarget(entry.Host)
	m.target, m.hardware = t, entry.Hardware
	return err
}

// readHosts returns the pool, and which hosts are machines.
func (p *Provider) readHosts() (pool []member, records map[string]hostRecord, err error) {
	if pool, err = p.readPool(); err == nil {
		records, err = p.readLedger()
	}
	return pool, records, err
}

// The pool is a list, or the file of one. The file is read every time, so that hosts can be added.
func (p *Provider) readPool() ([]member, error) {
	text := strings.TrimSpace(p.env.Config["pool"])
	if text == "" {
		return nil, nil
	}
	if strings.HasPrefix(text, "/") || strings.HasPrefix(text, "~/") {
		path, err := expandPath(text)
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read ssh.pool: %w", err)
		}
		text = string(data)
	}
	var members []member
	if err := yaml.Unmarshal([]byte(text), &members); err != nil {
		return nil, withHints(fmt.Errorf("cannot read ssh.pool: %w", err),
			`want a list, or the absolute path of a file with one: [root@h1, {host: "ubuntu@h2:2222", fingerprint: "SHA256:...", hardware: "mem=8G cpu-cores=4 tags=ssd"}]`)
	}
	seen := map[string]bool{}
	for _, m := range members {
		if seen[m.target.address()] {
			return nil, fmt.Errorf("cannot read ssh.pool: host %q is there twice", m.target.address())
		}
		seen[m.target.address()] = true
	}
	return members, nil
}

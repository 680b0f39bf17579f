package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"gopkg.in/yaml.v3"

	"bijou/provision/provider"
	"bijou/state/constraints"
)

// listCandidates lists the hosts that can become the machine, the best first. If a host is already recorded
// as the machine, it is the only candidate. Otherwise the candidate is the host that the operator has named.
// If the operator has named none, the candidates are all hosts in the pool that are not machines.
func (p *Provider) listCandidates(spec provider.Spec) ([]member, error) {
	pool, records, err := p.readHosts()
	if err != nil {
		return nil, err
	}

	if t, ok := instanceHost(spec); ok {
		m, err := p.keepHost(spec, poolMember(pool, withSpecKey(t, spec, records)))
		return []member{m}, err
	}
	if r, ok := records[spec.Machine]; ok {
		t, err := r.parseHost()
		return []member{poolMember(pool, t)}, err
	}
	if spec.Placement != "" {
		t, err := parseTarget(spec.Placement)
		return []member{poolMember(pool, t)}, err
	}

	return freeMembers(pool, records)
}

func instanceHost(spec provider.Spec) (target, bool) {
	t, machine, err := parseID(spec.Instance)
	return t, err == nil && machine == spec.Machine
}

// withSpecKey returns the target with the fingerprint of its host's key, from the ledger or from the
// placement.
func withSpecKey(t target, spec provider.Spec, records map[string]hostRecord) target {
	if r := records[spec.Machine]; r.Host == t.String() {
		t.Fingerprint = r.Fingerprint
	}
	if named, err := parseTarget(spec.Placement); err == nil && named.String() == t.String() &&
		named.Fingerprint != "" {
		t.Fingerprint = named.Fingerprint
	}

	return t
}

// keepHost records in this provisioner's ledger that a host is the machine, even if the host does not
// answer. Before that, possibly only the ledger of another provisioner has that record. If the operator has
// given up the host, keepHost returns an error and records nothing.
func (p *Provider) keepHost(spec provider.Spec, m member) (member, error) {
	if p.isGivenUp(spec.Machine) {
		return m, withHints(fmt.Errorf("host %q has been given up: the file %q is empty",
			m.target, p.ledgerPath(spec.Machine)),
			"to use a different host for the machine: juju resolved "+spec.Machine)
	}
	return m, p.writeRecord(m.target, spec.Machine, spec.Token)
}

// poolMember returns the pool's entry for a host, or an entry with only the host. The pool's fingerprint
// takes precedence over a recorded one, since the operator may have changed it.
func poolMember(pool []member, t target) member {
	for _, m := range pool {
		if m.target.String() != t.String() {
			continue
		}

		if m.target.Fingerprint == "" {
			m.target.Fingerprint = t.Fingerprint
		}
		return m
	}

	return member{target: t}
}

// freeMembers returns the hosts in the pool that are not recorded as machines. It returns an error if there
// are no such hosts. The error is transient if all hosts in the pool are in use.
func freeMembers(pool []member, records map[string]hostRecord) (unused []member, err error) {
	machines := map[string]string{}
	for machine, r := range records {
		t, err := r.parseHost()
		if err != nil {
			// The mark on the host will show which machine it is.
			continue
		}
		machines[t.address()] = machine
	}

	for _, m := range pool {
		if machines[m.target.address()] == "" {
			unused = append(unused, m)
		}
	}

	switch {
	case len(pool) == 0:
		return nil, withHints(errors.New("there are no hosts to choose from"),
			"to name a host: juju add-machine ssh:USER@HOST; to set a pool of hosts: juju set-environment ssh.pool='[USER@HOST, ...]'")
	case len(unused) == 0:
		return nil, withHints(fmt.Errorf("all %d hosts of the pool are already machines: %w",
			len(pool), provider.ErrTransient),
			"add hosts to ssh.pool, or remove a machine: juju remove-machine ID")
	}

	return unused, nil
}

// chooseHost claims the first suitable candidate for the machine, and returns a connection to it.
func (p *Provider) chooseHost(ctx context.Context, s *startRun) (*conn, error) {
	candidates, err := p.listCandidates(s.spec)
	if err != nil {
		return nil, err
	}

	var reasons []error
	for _, m := range candidates {
		c, err := p.takeHost(ctx, s, m)
		if err == nil {
			return c, nil
		}
		reasons = append(reasons, err)
	}

	if _, only := instanceHost(s.spec); only || s.spec.Placement != "" {
		return nil, reasons[0]
	}

	return nil, joinReasons(reasons)
}

// joinReasons returns one error with the reasons why no host is suitable. The error is transient if a host
// does not answer, or is another machine and may become free.
func joinReasons(reasons []error) error {
	var text strings.Builder
	transient := false
	for _, r := range reasons {
		text.WriteString("\n  " + strings.ReplaceAll(r.Error(), "\n", "\n    "))
		transient = transient || errors.Is(r, provider.ErrTransient) || errors.Is(r, errTaken)
	}

	err := fmt.Errorf("none of the pool's free hosts is suitable:%s", text.String())
	if len(reasons) == 1 {
		err = reasons[0]
	}
	if transient && !errors.Is(err, provider.ErrTransient) {
		err = fmt.Errorf("%w: %w", provider.ErrTransient, err)
	}
	return err
}

// takeHost connects to a host, and claims it for the machine.
func (p *Provider) takeHost(ctx context.Context, s *startRun, m member) (*conn, error) {
	s.printf("connecting to %s", m.target)
	c, err := p.dial(ctx, m.target)
	if err != nil {
		return nil, err
	}
	if err := p.claimHost(ctx, s, c, m); err != nil {
		c.close()
		return nil, err
	}

	return c, nil
}

// claimHost marks a host as the machine, and records that in the ledger. If the host is already a different
// machine, it returns an error, and removes the ledger's record.
func (p *Provider) claimHost(ctx context.Context, s *startRun, c *conn, m member) error {
	own := mark{Environment: p.env.UUID, Name: p.env.Name, Machine: s.spec.Machine, Token: s.spec.Token}
	h, err := p.inspectHost(ctx, c)
	if err != nil {
		return err
	}

	if !h.marked {
		if err := p.checkFit(s, m, h); err != nil {
			return errors.Join(err, p.removeRecord(c.target, s.spec.Machine))
		}
		if h.mark, err = p.markHost(ctx, c, own); err != nil {
			return err
		}
	}

	// Another provisioner may have marked the host in the meantime.
	if h.mark != own {
		return errors.Join(p.takenError(c.target, h.mark), p.removeRecord(c.target, s.spec.Machine))
	}

	// The record is written again, since another process may have removed or replaced it in the meantime.
	return p.writeRecord(c.target, s.spec.Machine, s.spec.Token)
}

// markHost puts the mark on a host without a mark, and returns the mark that the host has afterwards. It
// first writes the ledger, so that the host is known even if the connection breaks. If it is certain that the
// host was not marked, it removes the record again.
func (p *Provider) markHost(ctx context.Context, c *conn, own mark) (mark, error) {
	if err := p.writeRecord(c.target, own.Machine, own.Token); err != nil {
		return mark{}, err
	}

	said, err := c.run(ctx, "claim", noStdin, p.root, own.String())
	if errors.As(err, &scriptError{}) {
		err = errors.Join(err, p.removeRecord(c.target, own.Machine))
	}
	if err != nil {
		return mark{}, hostError("mark", c.target, err)
	}

	return readMark(said)
}

// minSpareDisk is the free disk space, in MiB, that a host needs in addition to the binary, for charms and
// units.
const minSpareDisk = 64

// checkFit returns an error if the host cannot be the machine: its architecture is different, it has too
// little space, or it does not meet the constraints.
func (p *Provider) checkFit(s *startRun, m member, h hostFacts) error {
	need := uint64(s.bundle.size>>20) + minSpareDisk
	switch {
	case h.arch != constraints.HostArch():
		return withHints(
			fmt.Errorf("host %q has the architecture %s, but the model's binary is for %s",
				m.target, h.arch, constraints.HostArch()),
			"name a host of the same architecture",
		)
	case h.free < need:
		return withHints(
			fmt.Errorf("the disk of host %q is full: only %d MB are free below %s, but %d are needed",
				m.target, h.free, p.root, need),
			"free some disk space there, then: juju resolved "+s.spec.Machine,
		)
	}

	facts, err := m.findHardware(h)
	if err != nil {
		return err
	}
	if unmet := s.spec.Constraints.Unmet(facts); len(unmet) > 0 {
		return fmt.Errorf("host %q lacks: %s", m.target, strings.Join(unmet, " "))
	}

	return nil
}

// findHardware returns the host's hardware. Values in the pool take precedence over those that were found
// on the host.
func (m member) findHardware(h hostFacts) (constraints.Hardware, error) {
	said, err := constraints.Parse(m.hardware)
	if err != nil {
		return constraints.Hardware{}, fmt.Errorf("cannot read the hardware of host %q in ssh.pool: %w",
			m.target, err)
	}

	facts := said.Hardware()
	facts.Arch = cmp.Or(facts.Arch, h.arch)
	facts.CPUCores = cmp.Or(facts.CPUCores, h.cores)
	facts.Mem = cmp.Or(facts.Mem, h.memory)
	facts.RootDisk = cmp.Or(facts.RootDisk, h.disk)
	return facts, nil
}

// member is a host in the pool.
type member struct {
	target   target
	hardware string // in the syntax of constraints; missing values are found on the host
}

// UnmarshalYAML reads a host: a string, or a mapping with its hardware and fingerprint.
func (m *member) UnmarshalYAML(node *yaml.Node) error {
	entry := struct {
		Host        string `yaml:"host"`
		Fingerprint string `yaml:"fingerprint"`
		Hardware    string `yaml:"hardware"`

		// Unknown collects all other keys, which would otherwise be ignored silently.
		Unknown map[string]any `yaml:",inline"`
	}{Host: node.Value}

	if node.Kind != yaml.ScalarNode {
		if err := node.Decode(&entry); err != nil {
			return err
		}
	}

	for key := range entry.Unknown {
		return fmt.Errorf("unknown key %q of a host: the keys are host, fingerprint and hardware", key)
	}
	if entry.Fingerprint != "" {
		entry.Host += "#" + entry.Fingerprint
	}
	t, err := parseTarget(entry.Host)
	if err != nil {
		return err
	}

	m.target = t
	m.hardware = entry.Hardware
	return nil
}

// readHosts returns the pool, and the records of hosts that are machines.
func (p *Provider) readHosts() (pool []member, records map[string]hostRecord, err error) {
	pool, err = p.readPool()
	if err != nil {
		return pool, records, err
	}

	records, err = p.readLedger()
	return pool, records, err
}

// readPool reads the pool of hosts: a list, or the file that contains one. It reads the file every time, so
// that operators can add hosts.
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
			return nil, fmt.Errorf("cannot read ssh.pool: host %q appears twice", m.target.address())
		}
		seen[m.target.address()] = true
	}

	return members, nil
}

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

// listCandidates lists the hosts that can become the machine, in the order of the pool. If a host is already
// recorded as the machine, in the state or in the ledger, it is the only candidate. Otherwise the only
// candidate is the host that the operator has named. If the operator has named none, the candidates are all
// hosts in the pool that are not machines. listCandidates returns an error if there are no such hosts.
//
// If the state records a host for the machine, listCandidates also writes that host to the ledger. It returns
// an error if the operator has given up that host.
func (p *Provider) listCandidates(spec provider.Spec) ([]member, error) {
	pool, records, err := p.readHosts()
	if err != nil {
		return nil, err
	}

	if host, ok := instanceHost(spec); ok {
		m, err := p.keepHost(spec, poolMember(pool, withSpecKey(host, spec, records)))
		return []member{m}, err
	}
	if r, ok := records[spec.Machine]; ok {
		host, err := r.parseHost()
		return []member{poolMember(pool, host)}, err
	}
	if spec.Placement != "" {
		host, err := parseTarget(spec.Placement)
		return []member{poolMember(pool, host)}, err
	}

	return freeMembers(pool, records)
}

// instanceHost returns the host of the machine's recorded instance. It returns false if the state records no
// instance of this provider for the machine.
func instanceHost(spec provider.Spec) (target, bool) {
	t, machine, err := parseID(spec.Instance)
	return t, err == nil && machine == spec.Machine
}

// withSpecKey returns the target with the fingerprint of its host's key. The fingerprint in the placement
// takes precedence over that in the ledger. Both count only if they are about the same USER@HOST:PORT. If
// neither is, the target does not change.
func withSpecKey(t target, spec provider.Spec, records map[string]hostRecord) target {
	if r := records[spec.Machine]; r.Host == t.String() {
		t.Fingerprint = r.Fingerprint
	}

	placed, err := parseTarget(spec.Placement)
	isSameHost := err == nil && placed.String() == t.String()
	if isSameHost && placed.Fingerprint != "" {
		t.Fingerprint = placed.Fingerprint
	}

	return t
}

// keepHost records in this provisioner's ledger that the host m is the machine, and returns m. It does not
// contact the host. Another provisioner may have started the machine, and have the only record in its own ledger.
// If the operator has given up the host, which an empty file in the ledger shows, keepHost returns an error and
// records nothing.
func (p *Provider) keepHost(spec provider.Spec, m member) (member, error) {
	if p.isGivenUp(spec.Machine) {
		return m, withHints(fmt.Errorf("host %q has been given up: the file %q is empty",
			m.target, p.ledgerPath(spec.Machine)),
			"to use a different host for the machine: juju resolved "+spec.Machine)
	}
	return m, p.writeRecord(m.target, spec.Machine, spec.Token)
}

// poolMember returns the pool's entry for the host t. If the pool does not have the host, it returns an entry
// that contains only t. A fingerprint in the pool takes precedence over that of t, since the operator may have
// changed the pool.
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
func freeMembers(pool []member, records map[string]hostRecord) (free []member, err error) {
	if len(pool) == 0 {
		return nil, withHints(errors.New("there are no hosts to choose from"),
			"to name a host: juju add-machine ssh:USER@HOST; to set a pool of hosts: juju set-environment ssh.pool='[USER@HOST, ...]'")
	}

	inUse := map[string]bool{} // by address, since two users can log in to the same host
	for _, r := range records {
		host, err := r.parseHost()
		if err != nil {
			// The record does not show its host. If that host is chosen, the mark on it shows that it is in use.
			continue
		}
		inUse[host.address()] = true
	}

	for _, m := range pool {
		if !inUse[m.target.address()] {
			free = append(free, m)
		}
	}

	if len(free) == 0 {
		return nil, withHints(fmt.Errorf("all %d hosts of the pool are already machines: %w",
			len(pool), provider.ErrTransient),
			"add hosts to ssh.pool, or remove a machine: juju remove-machine ID")
	}

	return free, nil
}

// chooseHost claims the first suitable candidate for the machine, and returns a connection to it. The caller
// must close the connection. If no candidate is suitable, the error contains the reason for each.
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

	// There is only one candidate if the state or the operator names the host. If that host is a different
	// machine, the error is not transient, unlike that of joinReasons.
	_, isRecorded := instanceHost(s.spec)
	if isRecorded || s.spec.Placement != "" {
		return nil, reasons[0]
	}

	return nil, joinReasons(reasons)
}

// joinReasons returns one error with the reasons why no host is suitable. The error is transient if one of the
// hosts does not answer, or is in use as another machine. Such a host may become suitable.
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

// takeHost connects to a host, and claims the host for the machine. It returns the connection.
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

// claimHost marks a host as the machine, and records the host in the ledger. It accepts a host that already
// has the machine's mark. If the host is a different machine, or has no mark and does not fit the machine, it
// returns an error and removes the ledger's record of the host as the machine.
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
		h.mark, err = p.markHost(ctx, c, own)
		if err != nil {
			return err
		}
	}

	// The host may have been a different machine before, or another provisioner has just marked it.
	if h.mark != own {
		return errors.Join(p.takenError(c.target, h.mark), p.removeRecord(c.target, s.spec.Machine))
	}

	// The record is written again, since another process may have removed or replaced it in the meantime.
	return p.writeRecord(c.target, s.spec.Machine, s.spec.Token)
}

// markHost puts the mark own on a host without a mark, and returns the mark that the host has afterwards. That
// is a different mark if another provisioner was faster.
//
// It first writes the ledger, so that the host is known even if the connection breaks. It removes the record
// again if the script or sudo fails.
func (p *Provider) markHost(ctx context.Context, c *conn, own mark) (mark, error) {
	if err := p.writeRecord(c.target, own.Machine, own.Token); err != nil {
		return mark{}, err
	}

	output, err := c.run(ctx, "claim", noStdin, p.root, own.String())
	scriptFailed := errors.As(err, &scriptError{})
	if scriptFailed {
		removeErr := p.removeRecord(c.target, own.Machine)
		return mark{}, hostError("mark", c.target, errors.Join(err, removeErr))
	}
	if err != nil {
		// The connection broke, so the script may have marked the host.
		return mark{}, hostError("mark", c.target, err)
	}

	return readMark(output)
}

// minSpareDisk is the free disk space, in MiB, that a host needs in addition to the binary, for charms and
// units.
const minSpareDisk = 64

// checkFit returns an error if the host cannot be the machine. This is the case if it does not have this
// program's architecture, which is that of the model's binary, has too little free disk space, or does not
// meet the constraints. checkFit also returns an error if it cannot read the hardware in ssh.pool.
func (p *Provider) checkFit(s *startRun, m member, h hostFacts) error {
	if h.arch != constraints.HostArch() {
		return withHints(
			fmt.Errorf("host %q has the architecture %s, but the model's binary is for %s",
				m.target, h.arch, constraints.HostArch()),
			"name a host of the same architecture",
		)
	}

	neededDisk := uint64(s.bundle.size>>20) + minSpareDisk
	if h.free < neededDisk {
		return withHints(
			fmt.Errorf("the disk of host %q is full: only %d MB are free below %s, but %d are needed",
				m.target, h.free, p.root, neededDisk),
			"free some disk space there, then: juju resolved "+s.spec.Machine,
		)
	}

	hardware, err := m.findHardware(h)
	if err != nil {
		return err
	}
	if unmet := s.spec.Constraints.Unmet(hardware); len(unmet) > 0 {
		return fmt.Errorf("host %q lacks: %s", m.target, strings.Join(unmet, " "))
	}

	return nil
}

// findHardware returns the host's hardware. Values in the pool take precedence over h, the values that were
// found on the host.
func (m member) findHardware(h hostFacts) (constraints.Hardware, error) {
	inPool, err := constraints.Parse(m.hardware)
	if err != nil {
		return constraints.Hardware{}, fmt.Errorf("cannot read the hardware of host %q in ssh.pool: %w",
			m.target, err)
	}

	hardware := inPool.Hardware()
	// inspectHost finds only these values.
	hardware.Arch = cmp.Or(hardware.Arch, h.arch)
	hardware.CPUCores = cmp.Or(hardware.CPUCores, h.cores)
	hardware.Mem = cmp.Or(hardware.Mem, h.memory)
	hardware.RootDisk = cmp.Or(hardware.RootDisk, h.disk)
	return hardware, nil
}

// member is a host in the pool.
type member struct {
	target   target
	hardware string // in the syntax of constraints; values that are missing are read on the host
}

// UnmarshalYAML reads an entry of the pool: a string that names the host, or a mapping with the host, its
// hardware and its fingerprint. It returns an error for an unknown key.
func (m *member) UnmarshalYAML(node *yaml.Node) error {
	entry := struct {
		Host        string `yaml:"host"`
		Fingerprint string `yaml:"fingerprint"`
		Hardware    string `yaml:"hardware"`

		// Unknown collects all other keys, which would otherwise be ignored silently.
		Unknown map[string]any `yaml:",inline"`
	}{Host: node.Value}

	// A string is already the value of Host.
	if node.Kind != yaml.ScalarNode {
		if err := node.Decode(&entry); err != nil {
			return err
		}
	}

	// The error names one of the unknown keys.
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

// readHosts returns the pool, and the ledger's records of hosts by machine.
func (p *Provider) readHosts() (pool []member, records map[string]hostRecord, err error) {
	pool, err = p.readPool()
	if err != nil {
		return pool, records, err
	}

	records, err = p.readLedger()
	return pool, records, err
}

// readPool reads the pool of hosts from the setting ssh.pool. The setting is a list of hosts, or the path of a
// file that contains such a list. readPool reads the file at each call, so that operators can add hosts. It
// returns nil if the setting is empty. It returns an error if a host appears twice, even with different users.
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

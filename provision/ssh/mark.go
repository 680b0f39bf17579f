package ssh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"bijou/provision/provider"
	"bijou/state/constraints"
	"bijou/state/lazyregexp"
)

// mark lies on a host that is a machine, and says whose.
type mark struct {
	Environment string `json:"environment"`
	Name        string `json:"name"` // the environment's, for people
	Machine     string `json:"machine"`
	Token       string `json:"token"`
}

func (p *Provider) newMark(machine, token string) mark {
	return mark{Environment: p.env.UUID, Name: p.env.Name, Machine: machine, Token: token}
}

// String returns the mark as it is written.
func (m mark) String() string {
	data, err := json.Marshal(m)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return string(data)
}

// Operators copy the words of a mark.
var markWord = lazyregexp.New(`\A[A-Za-z0-9][A-Za-z0-9._-]*\z`)

func readMark(text string) (m mark, err error) {
	err = json.Unmarshal([]byte(text), &m)
	if err == nil && !(markWord.MatchString(m.Environment) && markWord.MatchString(m.Name) && markWord.MatchString(m.Machine)) {
		err = errors.New("it names no machine of an environment")
	}
	if err != nil {
		return mark{}, fmt.Errorf("cannot read the host's mark %q: %w", text, err)
	}
	return m, nil
}

// errTaken: the host is a machine already.
var errTaken = errors.New("one host is one machine's")

func (p *Provider) takenError(t target, m mark) error {
	if m.Environment == p.env.UUID {
		return withHints(fmt.Errorf("host %q is machine %s already: %w", t, m.Machine, errTaken),
			"name another host, or put units on that machine: juju deploy --to "+m.Machine)
	}
	return withHints(fmt.Errorf("host %q is managed already: it is machine %s of environment %q (uuid %s): %w", t, m.Machine, m.Name, m.Environment, errTaken),
		"name another host, or destroy that machine there: juju destroy-machine -e "+m.Name+" "+m.Machine,
		"if that environment is gone for good, remove "+p.root+"/managed-by.json on the host, and "+p.root+"/"+m.Environment)
}

// hostFacts was seen on a host.
type hostFacts struct {
	arch    string // as constraints call it
	cores   uint64
	memory  uint64 // MB
	disk    uint64 // MB in all, where environments lie
	free    uint64 // MB
	marked  bool
	mark    mark
	running bool // the agent's service
}

func (p *Provider) inspectHost(ctx context.Context, c *conn) (h hostFacts, err error) {
	said, err := c.run(ctx, "look", nil, p.root, p.env.UUID, p.systemdFolder)
	if err != nil {
		return h, fmt.Errorf("cannot look at host %q: %w", c.target, err)
	}
	for line := range strings.Lines(said) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "arch":
			h.arch = constraints.ArchOf(value)
		case "mark":
			h.marked = true
			if h.mark, err = readMark(value); err != nil {
				return h, err
			}
		case "runs":
			h.running = true
		default:
			h.setNumber(key, value)
		}
	}
	return h, nil
}

// What is no number stays unknown.
func (h *hostFacts) setNumber(key, value string) {
	n, _ := strconv.ParseUint(value, 10, 64)
	switch key {
	case "cores":
		h.cores = n
	case "memory":
		h.memory = n
	case "disk":
		h.disk = n
	case "free":
		h.free = n
	}
}

func (p *Provider) newInstance(t target, machine string, running bool) provider.Instance {
	return provider.Instance{
		ID: instanceID(t, machine), Environment: p.env.UUID, Machine: machine, Running: running,
		Private: t.Host, Public: t.Host,
	}
}

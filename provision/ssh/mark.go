package ssh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"bijou/provision/provider"
	"bijou/state/constraints"
	"bijou/state/jsonfile"
	"bijou/state/osutil"
)

// mark lies on a host that is a machine, and says whose.
type mark struct {
	Environment string `json:"environment"`
	Name        string `json:"name"` // the environment's, for people
	Machine     string `json:"machine"`
	Token       string `json:"token"`
}

// String returns the mark in its written form.
func (m mark) String() string {
	data, err := json.Marshal(m)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return string(data)
}

// Operators copy the words of a mark.
var markWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._-]*\z`)
})

// readMark parses the mark on a host.
func readMark(text string) (m mark, err error) {
	err = json.Unmarshal([]byte(text), &m)
	if err != nil {
		return m, fmt.Errorf("cannot read the host's mark %q: %w", text, err)
	}
	if !(markWord().MatchString(m.Environment) && markWord().MatchString(m.Name) &&
		markWord().MatchString(m.Machine)) {
		return m, fmt.Errorf("cannot read the host's mark %q: it does not name a machine of a model", text)
	}

	return m, nil
}

// errTaken: the host is a machine already.
var errTaken = errors.New("one host is one machine's")

// takenError returns the error about a host that is a machine already.
func (p *Provider) takenError(t target, m mark) error {
	if m.Environment == p.env.UUID {
		return withHints(fmt.Errorf("host %q is already machine %s: %w", t, m.Machine, errTaken),
			"name a different host, or put units on that machine: juju deploy --to "+m.Machine)
	}

	return withHints(fmt.Errorf("host %q is already managed: it is machine %s of model %q (uuid %s): %w",
		t, m.Machine, m.Name, m.Environment, errTaken),
		"name a different host, or remove that machine there: juju remove-machine -e "+m.Name+" "+m.Machine,
		"if that model is gone for good, remove "+p.root+"/managed-by.json on the host, and "+p.root+
			"/"+m.Environment)
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

// inspectHost asks a host for its hardware, its mark, and whether the machine's agent runs there.
func (p *Provider) inspectHost(ctx context.Context, c *conn) (h hostFacts, err error) {
	said, err := c.run(ctx, "look", nil, p.root, p.env.UUID, p.systemdFolder)
	if err != nil {
		return h, fmt.Errorf("cannot look at host %q: %w", c.target, err)
	}
	numbers := map[string]*uint64{"cores": &h.cores, "memory": &h.memory, "disk": &h.disk, "free": &h.free}

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
		}

		if n := numbers[key]; n != nil {
			*n, _ = strconv.ParseUint(value, 10, 64) // what is no number stays unknown
		}
	}

	return h, nil
}

// newInstance returns the instance that a host is.
func (p *Provider) newInstance(t target, machine string, running bool) provider.Instance {
	return provider.Instance{
		ID:          t.String() + "/" + machine,
		Environment: p.env.UUID,
		Machine:     machine,
		Running:     running,
		Private:     t.Host,
		Public:      t.Host,
	}
}

// hostRecord says that a host is a machine, or is about to become it. It is written before the host
// is touched, and removed when nothing is left on it: so that a host that does not answer is known
// to be a machine all the same.
type hostRecord struct {
	Host        string `json:"host"` // user@host:port
	Fingerprint string `json:"fingerprint,omitempty"`
	Machine     string `json:"machine"`
	Token       string `json:"token"`

	unreadable error // why nobody knows which host it is
}

// parseHost returns the host of the record, with the fingerprint of its key.
func (r hostRecord) parseHost() (target, error) {
	if r.unreadable != nil {
		return target{}, r.unreadable
	}
	t, err := parseTarget(r.Host)
	if err != nil {
		return target{}, err
	}

	t.Fingerprint = r.Fingerprint
	return t, nil
}

func (p *Provider) ledgerPath(machine string) string {
	return filepath.Join(p.env.Dir, "ssh", "machines", machine+".json")
}

// readLedger reads the records of hosts that are machines, by machine. A record that cannot be read is
// returned as such. It keeps its own machine from starting on a different host, and affects no other
// machine.
func (p *Provider) readLedger() (map[string]hostRecord, error) {
	entries, err := os.ReadDir(filepath.Dir(p.ledgerPath("")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read which hosts are machines: %w", err)
	}
	all := map[string]hostRecord{}

	for _, e := range entries {
		machine, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || provider.CheckMachine(machine) != nil {
			continue // renameio's, of a write that was cut off
		}

		if r, isHost := p.readHostRecord(machine); isHost {
			all[machine] = r
		}
	}

	return all, nil
}

// readHostRecord reads the record of a machine's host. isHost is false if it is gone, or empty, which an
// operator makes it to give up the host.
func (p *Provider) readHostRecord(machine string) (r hostRecord, isHost bool) {
	data, err := os.ReadFile(p.ledgerPath(machine))
	if errors.Is(err, fs.ErrNotExist) {
		return hostRecord{}, false
	}
	if err == nil && len(data) == 0 {
		return hostRecord{}, false
	}

	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		r = hostRecord{
			Machine: machine,
			unreadable: fmt.Errorf("cannot read which host is machine %s, in %q: %w",
				machine, p.ledgerPath(machine), err),
		}
	}
	return r, true
}

// Identity tells one host of a machine from the next, and one start from the next.
func (r hostRecord) Identity() any { return [2]string{r.Host, r.Token} }

// writeRecord writes the ledger's record of the host that a machine has.
func (p *Provider) writeRecord(t target, machine, token string) error {
	path := p.ledgerPath(machine)
	err := osutil.MkdirAll(filepath.Dir(path), 0o700)
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}

	err = jsonfile.Write(path, hostRecord{
		Host:        t.String(),
		Fingerprint: t.Fingerprint,
		Machine:     machine,
		Token:       token,
	})
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}

	return nil
}

// isGivenUp reports whether the operator has given the machine's host up as gone for good, by emptying its
// record. A removed record would not do: a host that is only away would be recorded again.
func (p *Provider) isGivenUp(machine string) bool {
	info, err := os.Stat(p.ledgerPath(machine))
	return err == nil && info.Size() == 0
}

// removeRecord removes a machine's record, unless it is about a different host.
func (p *Provider) removeRecord(t target, machine string) error {
	all, err := p.readLedger()
	if err != nil || all[machine].Host != t.String() && !p.isGivenUp(machine) {
		return err
	}

	if err := os.Remove(p.ledgerPath(machine)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot forget that host %q was machine %s: %w", t, machine, err)
	}

	return nil
}

// writeFile writes a file, and makes its directory.
func writeFile(path string, data []byte) error {
	err := osutil.MkdirAll(filepath.Dir(path), 0o700)
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	if err := osutil.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}

	return nil
}

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

// mark is the content of the file ROOT/managed-by.json on a host that is a machine. It names the machine.
type mark struct {
	Environment string `json:"environment"`
	Name        string `json:"name"` // the environment's name, for people
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

// markWord matches a word of a mark. It allows only characters that are safe in a command, since operators copy
// such words into commands.
var markWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._-]*\z`)
})

// readMark parses the mark on a host. It returns an error if the text is not a mark, or if the environment,
// its name or the machine does not match markWord.
func readMark(text string) (m mark, err error) {
	err = json.Unmarshal([]byte(text), &m)
	if err != nil {
		return m, fmt.Errorf("cannot read the host's mark %q: %w", text, err)
	}
	for _, word := range []string{m.Environment, m.Name, m.Machine} {
		if !markWord().MatchString(word) {
			return m, fmt.Errorf("cannot read the host's mark %q: it does not name a machine of a model", text)
		}
	}

	return m, nil
}

// errTaken is the cause of an error about a host that is already a different machine.
var errTaken = errors.New("a host can be only one machine")

// takenError returns the error for a host that is already the machine that m names. The error wraps errTaken.
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

// hostFacts are facts that inspectHost has found on a host.
type hostFacts struct {
	arch    string // in the syntax of constraints
	cores   uint64
	memory  uint64 // in MiB
	disk    uint64 // the size of the disk of Provider.root, in MiB
	free    uint64 // the free space on that disk, in MiB
	marked  bool
	mark    mark
	running bool // the agent's service is running
}

// inspectHost queries a host for its hardware, its mark, and whether the machine's agent is running. It
// returns an error if it cannot read the host's mark.
func (p *Provider) inspectHost(ctx context.Context, c *conn) (h hostFacts, err error) {
	output, err := c.run(ctx, "look", noStdin, p.root, p.env.UUID, p.systemdFolder)
	if err != nil {
		return h, fmt.Errorf("cannot examine host %q: %w", c.target, err)
	}

	// The script prints lines KEY=VALUE.
	numbers := map[string]*uint64{"cores": &h.cores, "memory": &h.memory, "disk": &h.disk, "free": &h.free}
	for line := range strings.Lines(output) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "arch":
			h.arch = constraints.ArchOf(value)
		case "mark":
			h.marked = true
			h.mark, err = readMark(value)
			if err != nil {
				return h, err
			}
		case "runs":
			h.running = true
		}

		if number := numbers[key]; number != nil {
			// If the value is not a number, it is unknown and stays 0.
			*number, _ = strconv.ParseUint(value, 10, 64)
		}
	}

	return h, nil
}

// newInstance returns the instance for a host that is the given machine.
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

// hostRecord is the ledger's record of a host that is a machine, or is about to become one. The ledger is a
// directory with a file for each machine. A record is written before the host is changed, and removed when
// nothing is left on the host. Therefore a host that does not answer is still known to be a machine.
type hostRecord struct {
	Host        string `json:"host"` // user@host:port
	Fingerprint string `json:"fingerprint,omitempty"`
	Machine     string `json:"machine"`
	Token       string `json:"token"`

	unreadable error // the reason why the record cannot be read, or nil
}

// parseHost returns the host of the record, with the fingerprint of its key. For a record that could not be read,
// it returns the reason as the error.
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

// ledgerPath returns the path of a machine's record in the ledger.
func (p *Provider) ledgerPath(machine string) string {
	return filepath.Join(p.env.Dir, "ssh", "machines", machine+".json")
}

// readLedger reads the records of hosts that are machines, by machine. It leaves out an empty record, with
// which an operator gives up the host. It also returns a record that cannot be read, with the reason in
// unreadable. Such a record prevents a start of its machine on a different host, and does not affect other
// machines.
func (p *Provider) readLedger() (map[string]hostRecord, error) {
	entries, err := os.ReadDir(filepath.Dir(p.ledgerPath("")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read which hosts are machines: %w", err)
	}

	records := map[string]hostRecord{}
	for _, e := range entries {
		machine, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || provider.CheckMachine(machine) != nil {
			// This is not a record. For example, it is the temporary file of an interrupted write.
			continue
		}

		if r, isHost := p.readHostRecord(machine); isHost {
			records[machine] = r
		}
	}

	return records, nil
}

// readHostRecord reads the record of a machine's host. The result isHost is false if the record does not
// exist or is empty. Operators empty a record to give up the host. If the record cannot be read, isHost is
// true, and r.unreadable is the reason.
func (p *Provider) readHostRecord(machine string) (r hostRecord, isHost bool) {
	data, err := os.ReadFile(p.ledgerPath(machine))
	if errors.Is(err, fs.ErrNotExist) {
		return hostRecord{}, false
	}
	if err != nil {
		return p.unreadableRecord(machine, err), true
	}
	if len(data) == 0 {
		return hostRecord{}, false
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return p.unreadableRecord(machine, err), true
	}
	if _, err := r.parseHost(); err != nil {
		return p.unreadableRecord(machine, err), true
	}

	return r, true
}

// unreadableRecord returns the value for a machine's record that cannot be read because of err.
func (p *Provider) unreadableRecord(machine string, err error) hostRecord {
	err = fmt.Errorf("cannot read which host is machine %s, in %q: %w", machine, p.ledgerPath(machine), err)
	return hostRecord{Machine: machine, unreadable: err}
}

// Identity implements carry.Identified: a record about a different host, or with a different token, keeps no
// unknown fields of the previous one.
func (r hostRecord) Identity() any { return [2]string{r.Host, r.Token} }

// writeRecord writes the ledger's record of a machine's host.
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

// isGivenUp reports whether the operator has given up the machine's host by emptying its record. Removing the
// record would not be enough, since a host that came back would be recorded again.
func (p *Provider) isGivenUp(machine string) bool {
	info, err := os.Stat(p.ledgerPath(machine))
	return err == nil && info.Size() == 0
}

// removeRecord removes a machine's record if it is about the host t, or if the operator has emptied it. It does
// nothing if the record is about a different host, does not exist or cannot be read.
func (p *Provider) removeRecord(t target, machine string) error {
	records, err := p.readLedger()
	if err != nil {
		return err
	}
	isOfHost := records[machine].Host == t.String()
	if !isOfHost && !p.isGivenUp(machine) {
		return nil
	}

	if err := os.Remove(p.ledgerPath(machine)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the record that host %q was machine %s: %w", t, machine, err)
	}

	return nil
}

// writeFile writes a file, and creates its directory.
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

package ssh

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bijou/state/durable"
)

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

func (r hostRecord) parseHost() (target, error) {
	if r.unreadable != nil {
		return target{}, r.unreadable
	}
	t, err := parseTarget(r.Host)
	t.Fingerprint = r.Fingerprint
	return t, err
}

func (p *Provider) ledgerPath(machine string) string {
	return filepath.Join(p.env.Dir, "ssh", "machines", machine+".json")
}

// A record that cannot be read keeps its own machine from being started elsewhere, and no other
// from anything.
func (p *Provider) readLedger() (map[string]hostRecord, error) {
	entries, err := os.ReadDir(filepath.Dir(p.ledgerPath("")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read which hosts are machines: %w", err)
	}
	all := map[string]hostRecord{}
	for _, e := range entries {
		machine, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || checkID(machine) != nil {
			continue // renameio's, of a write that was cut off
		}
		data, err := os.ReadFile(p.ledgerPath(machine))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && len(data) == 0 {
			continue // given up
		}
		var r hostRecord
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if err != nil {
			r = hostRecord{Machine: machine, unreadable: fmt.Errorf("cannot read which host is machine %s, in %q: %w", machine, p.ledgerPath(machine), err)}
		}
		all[machine] = r
	}
	return all, nil
}

func (p *Provider) writeRecord(t target, machine, token string) error {
	data, err := json.Marshal(hostRecord{Host: t.String(), Fingerprint: t.Fingerprint, Machine: machine, Token: token})
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	return writeFile(p.ledgerPath(machine), append(data, '\n'))
}

// The operator gives a machine's host up, as gone for good, by emptying its record, since one that
// is only away would be recorded again.
func (p *Provider) isGivenUp(machine string) bool {
	info, err := os.Stat(p.ledgerPath(machine))
	return err == nil && info.Size() == 0
}

// A record that is about another host stays.
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

func writeFile(path string, data []byte) error {
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	if err := durable.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	return nil
}

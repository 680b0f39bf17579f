package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"bijou/provision/provider"
	"bijou/state/osutil"
	"bijou/state/secret/keyfile"
)

// startRun is one call of Start.
type startRun struct {
	spec   provider.Spec
	bundle bundle
	boot   io.Writer
}

// printf prints a line of progress for the operator.
func (s *startRun) printf(format string, args ...any) { fmt.Fprintf(s.boot, format+"\n", args...) }

// Start makes a host the machine, and starts the agent there. After an interruption, the next call continues on
// the host that the state or the ledger records for the machine. If that host does not answer, Start returns a
// transient error, and never starts the machine on a different host. If the operator has given up the host that the
// state records, Start returns an error that is not transient.
func (p *Provider) Start(ctx context.Context, spec provider.Spec, boot io.Writer) (_ provider.Instance, err error) {
	if err := provider.CheckMachine(spec.Machine); err != nil {
		return provider.Instance{}, err
	}
	defer p.lockMachine(spec.Machine)()
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot start machine %s: %w", spec.Machine, err)
		}
	}()

	b, err := p.newBundle(spec)
	if err != nil {
		return provider.Instance{}, err
	}

	s := &startRun{spec: spec, bundle: b, boot: boot}
	c, err := p.chooseHost(ctx, s)
	if err != nil {
		return provider.Instance{}, err
	}
	defer c.close()

	if err := p.copyBundle(ctx, s, c); err != nil {
		return provider.Instance{}, err
	}

	s.printf("starting the agent")
	args := []string{p.remoteDir(), b.tools, spec.Machine, p.unitName(spec.Machine), p.systemdFolder}
	if _, err := c.run(ctx, "begin", noStdin, args...); err != nil {
		return provider.Instance{}, hostError("start the agent on", c.target, err)
	}

	p.noteAnswer(c.target) // so that Instances does not skip the host
	const running = true
	return p.newInstance(c.target, spec.Machine, running), nil
}

// copyBundle copies the agent's files to the host. It copies the binary only if the host's copy is missing or has
// a different digest.
func (p *Provider) copyBundle(ctx context.Context, s *startRun, c *conn) error {
	b := s.bundle
	if _, err := c.run(ctx, "prepare", noStdin, p.remoteDir(), b.tools, s.spec.Machine); err != nil {
		return hostError("prepare", c.target, err)
	}

	binaryPath := p.remoteDir() + "/tools/" + b.tools + "/bijou"
	answer, err := c.run(ctx, "holds", noStdin, binaryPath, b.sum)
	if err != nil {
		return hostError("look at the binary on", c.target, err)
	}

	hasBinary := strings.TrimSpace(answer) == "yes"
	if !hasBinary {
		if err := p.copyBinary(ctx, s, c, binaryPath); err != nil {
			return err
		}
	}

	for _, f := range b.files {
		path := p.remoteDir() + "/" + f.path
		if _, err := c.run(ctx, "receive", bytes.NewReader(f.data), path, f.mode, osutil.Digest(f.data)); err != nil {
			return hostError("copy "+f.path+" to", c.target, err)
		}
	}

	return nil
}

// copyBinary copies the binary to the path on the host, and prints how long that took.
func (p *Provider) copyBinary(ctx context.Context, s *startRun, c *conn, path string) error {
	binary, err := os.Open(s.bundle.binary)
	if err != nil {
		return fmt.Errorf("cannot read the binary for the host: %w", err)
	}
	defer binary.Close()

	s.printf("copying the binary, %d MiB", s.bundle.size>>20)
	began := time.Now()
	if _, err := c.run(ctx, "receive", binary, path, "755", s.bundle.sum); err != nil {
		return hostError("copy the binary to", c.target, err)
	}

	s.printf("copied in %s, and the SHA-256 sum is correct", time.Since(began).Round(time.Millisecond))
	return nil
}

// hostError returns the error "cannot VERB host" of a step on a host, with a hint if the host's disk is full.
func hostError(verb string, t target, err error) error {
	err = fmt.Errorf("cannot %s host %q: %w", verb, t, err)
	var scriptErr scriptError
	if errors.As(err, &scriptErr) && strings.Contains(scriptErr.stderr, "No space left on device") {
		return withHints(
			err,
			"the host's disk is full, and partial copies were removed; free some disk space, then: juju resolved MACHINE",
		)
	}

	return err
}

// Stop stops the agent and all processes that its hooks have left running, and removes the environment's files
// and the mark from the host. It does not remove packages that charms have installed. If the host's mark does not
// name this machine, it changes nothing on the host. In either case, it then removes the ledger's record of the
// host.
//
// Stop returns an error if it cannot reach the host, since the agent may still be running. If the operator has
// given up such a host, it only removes the record.
func (p *Provider) Stop(ctx context.Context, id string) (err error) {
	t, machine, err := parseID(id)
	if err != nil {
		return err
	}
	defer p.lockMachine(machine)()
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot stop machine %s: %w", machine, err)
		}
	}()

	t, err = p.withKnownKey(t, machine)
	if err != nil {
		return err
	}
	c, err := p.dial(ctx, t)
	if err != nil && p.isGivenUp(machine) {
		// Nothing can be removed from the host, and the machine counts as stopped.
		return p.removeRecord(t, machine)
	}
	if err != nil {
		hint := fmt.Sprintf("bijou retries the stop; if the host is gone for good, empty this file: truncate -s 0 %q",
			p.ledgerPath(machine))
		recordErr := p.recordDoubt(t, machine) // makes sure that the hint's file exists
		return errors.Join(withHints(err, hint), recordErr)
	}
	defer c.close()

	h, err := p.inspectHost(ctx, c)
	if err != nil {
		return err
	}

	isOurs := h.marked && h.mark.Environment == p.env.UUID && h.mark.Machine == machine
	if isOurs {
		if _, err := c.run(ctx, "end", noStdin, p.root, p.env.UUID, machine, h.mark.String()); err != nil {
			return hostError("clean up", t, err)
		}
	}

	return p.removeRecord(t, machine)
}

// recordDoubt records that a host may be the machine, unless the ledger already has a record of the machine.
// With this record, Instances lists the host. The operator can empty the record's file to give up the host.
func (p *Provider) recordDoubt(t target, machine string) error {
	records, err := p.readLedger()
	if err != nil {
		return err
	}
	if _, isRecorded := records[machine]; isRecorded {
		return nil
	}

	const noToken = "" // Stop does not know the machine's token
	return p.writeRecord(t, machine, noToken)
}

// withKnownKey returns the target with the fingerprint of its host's key from the pool, or otherwise from the
// ledger. If neither has a fingerprint, the target does not change.
func (p *Provider) withKnownKey(t target, machine string) (target, error) {
	pool, records, err := p.readHosts()
	if err != nil {
		return t, err
	}

	// Without a placement, withSpecKey uses only the ledger's fingerprint.
	t = withSpecKey(t, provider.Spec{Machine: machine}, records)
	return poolMember(pool, t).target, nil
}

// bundle contains the files that a machine's agent needs on its host.
type bundle struct {
	tools  string       // the name of the tools' directory, VERSION-SHA8
	binary string       // the path of the binary on this host
	sum    string       // the binary's SHA-256 digest
	size   int64        // the binary's size in bytes
	files  []bundleFile // ends with the environment's record, which makes the copy complete
}

// bundleFile is a small file. Its path is relative to the environment's directory.
type bundleFile struct {
	path, mode string
	data       []byte
}

// newBundle returns the files that the agent on a host needs. It returns an error if other hosts cannot
// reach the environment's state.
func (p *Provider) newBundle(spec provider.Spec) (b bundle, err error) {
	// A map keeps keys that this version does not know.
	record := map[string]any{}
	if err := p.env.ReadRecord(&record); err != nil {
		return bundle{}, err
	}

	if spec.Tools != "" {
		record["tools"] = spec.Tools
	}
	b.tools, _ = record["tools"].(string)
	if b.tools == "" || filepath.Base(b.tools) != b.tools {
		return bundle{}, fmt.Errorf("the model's record names %q instead of a directory of tools", b.tools)
	}

	// On the host, the state's URL names the copied credentials.
	stateURL, _ := record["state"].(string)
	record["state"], b.files, err = p.packCredentials(stateURL)
	if err != nil {
		return bundle{}, err
	}
	keys, err := p.packSecretKeys()
	if err != nil {
		return bundle{}, err
	}
	b.files = append(b.files, keys...)

	recordText, err := yaml.Marshal(record)
	if err != nil {
		return bundle{}, fmt.Errorf("cannot write the model's record: %w", err)
	}
	keepScript, err := scripts.ReadFile("scripts/keep.sh")
	if err != nil {
		return bundle{}, fmt.Errorf("internal error: %w", err)
	}

	// The record comes last, since a host that has the record has all files.
	b.files = append(b.files,
		bundleFile{path: "keep.sh", mode: "700", data: keepScript},
		bundleFile{path: "environment.yaml", mode: "600", data: recordText},
	)
	b.binary = filepath.Join(p.env.Dir, "tools", b.tools, "bijou")
	b.sum, b.size, err = osutil.DigestFile(b.binary)
	if err != nil {
		return bundle{}, fmt.Errorf("cannot read the binary for the host: %w", err)
	}

	return b, nil
}

// packSecretKeys returns the file with the environment's keys for secrets. It returns none if there is no
// such file, as in an environment that an earlier version has created.
func (p *Provider) packSecretKeys() ([]bundleFile, error) {
	keys, err := os.ReadFile(string(keyfile.In(p.env.Dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot copy the keys for secrets: %w", err)
	}

	return []bundleFile{{path: keyfile.FileName, mode: "600", data: keys}}, nil
}

// packCredentials returns the files that the state's URL names in its options, such as a certificate. It also
// returns the URL with the paths of the copies of these files on the host. It returns an error if other hosts
// cannot reach the state.
func (p *Provider) packCredentials(stateURL string) (remoteURL string, files []bundleFile, err error) {
	// Shared is set if the state is a file in the environment's directory, which other hosts do not have.
	scheme, _, _ := strings.Cut(stateURL, ":")
	if p.env.Shared || scheme == "sqlite" || scheme == "etcd+unix" {
		return "", nil, withHints(errors.New("the model's state is on this host only, and other hosts cannot reach it"),
			"move the state to an etcd that they can reach: juju migrate-state etcd://HOST:PORT,.../PREFIX")
	}

	base, query, hasOptions := strings.Cut(stateURL, "?")
	if !hasOptions {
		return stateURL, nil, nil
	}
	options, err := url.ParseQuery(query)
	if err != nil {
		return "", nil, errors.New("the options of the state's URL are not a valid query")
	}

	for _, option := range []string{"ca", "cert", "key", "password-file"} {
		if options.Get(option) == "" {
			continue
		}

		path := options.Get(option)
		// Relative paths refer to files in the environment's directory.
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.env.Dir, path)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return "", nil, fmt.Errorf("cannot copy the file that the state's URL names as %s: %w", option, err)
		}

		file := bundleFile{path: "credentials/" + option, mode: "600", data: data}
		files = append(files, file)
		options.Set(option, p.remoteDir()+"/"+file.path)
	}

	// A query can contain slashes, and paths are easier to read with them.
	return base + "?" + strings.ReplaceAll(options.Encode(), "%2F", "/"), files, nil
}

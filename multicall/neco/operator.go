package neco

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"gopkg.in/yaml.v3"

	"bijou/multicall/console"
	"bijou/state/keyspace"
	"bijou/state/text"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/record"
	"bijou/updater/release"
)

// operator is one call of neco.
type operator struct {
	ctx     context.Context
	streams console.Streams
	url     string
	parts   Parts
	audit   record.Audit // the record of this call, for a call that makes changes
}

// reasonFlag is the flag of commands that make changes.
type reasonFlag struct {
	Why string `placeholder:"REASON" help:"Give the reason, for neco history --audit."`
}

// setDetail sets the detail of the audit record, such as the servers that the command changes.
func (o *operator) setDetail(format string, args ...any) {
	o.audit.Detail = fmt.Sprintf(format, args...)
}

// withHint adds a hint to the errors that an operator can resolve.
func withHint(err error) error {
	switch {
	case errors.Is(err, updater.ErrNotInitialised):
		return console.Hint(err,
			"check that --state or $NECO_STATE names the right store; to create neco's keys there: neco init")
	case errors.Is(err, context.Canceled):
		return console.Hint(err, "the command was interrupted; look at neco status before you repeat it")
	case errors.Is(err, keyspace.ErrAway):
		return console.Hint(
			err,
			"check that the store can be reached and is not locked; look at neco status before you repeat a change",
		)
	}

	return err
}

// storeURL returns the URL of the fleet's store, or a usage error if no URL is given.
func (o *operator) storeURL() (string, error) {
	if o.url == "" {
		return "", console.Hint(console.Usage(errors.New("no state URL given")),
			"give --state URL, or set NECO_STATE, as in: export NECO_STATE=etcd://10.0.0.3:2379",
			"to try it out on one machine: --state sqlite:/tmp/neco.db")
	}
	return o.url, nil
}

// openTimeout is how long a command tries to open the store. It is short, since the operator is waiting.
const openTimeout = 5 * time.Second

// open opens the fleet's store, calls f, and closes the store.
func (o *operator) open(f func(k *keyspace.Space) error) error {
	url, err := o.storeURL()
	if err != nil {
		return err
	}

	// The timeout limits only the opening of the store, and not f.
	ctx, cancel := context.WithTimeout(o.ctx, openTimeout)
	defer cancel()
	k, err := updater.OpenStore(ctx, url)
	if err != nil {
		return err
	}

	err = f(k)
	return errors.Join(err, k.Close())
}

// read opens the fleet's store, and returns the result of f for one view of the store.
func read[T any](o *operator, f func(v *keyspace.View) (T, error)) (result T, err error) {
	err = o.open(func(k *keyspace.Space) (err error) {
		result, err = keyspace.Read(o.ctx, k, f)
		return err
	})
	return result, err
}

// loadSnapshot reads the snapshot on which decisions about updates are based.
func (o *operator) loadSnapshot() (decide.Snapshot, error) {
	return read(o, func(v *keyspace.View) (decide.Snapshot, error) { return decide.Load(v, o.parts.Version) })
}

// newSource returns the configured source of releases. If none is configured, its error has hints.
func newSource(c record.Config) (*release.Source, error) {
	source, err := release.NewSource(c)
	if errors.Is(err, release.ErrNoRepository) {
		err = hintSource(err)
	}
	return source, err
}

// hintSource adds hints about how to configure the source of releases.
func hintSource(err error) error {
	return console.Hint(err, "for releases on GitHub: neco config set github-repository OWNER/NAME",
		"for releases in a directory: neco config set release-folder https://HOST/PATH, or /PATH")
}

// update commits f's changes. It writes the audit record in the same transaction, unless f changes nothing. f
// runs again after a conflict.
func (o *operator) update(f func(tx *keyspace.Tx) error) error {
	return o.open(func(k *keyspace.Space) error {
		return k.Update(o.ctx, func(tx *keyspace.Tx) error {
			if err := f(tx); err != nil {
				return err
			}
			if len(tx.Writes()) == 0 {
				return nil
			}
			return updater.Audit(tx, o.audit)
		})
	})
}

// maxBatch is the maximum number of changes in one transaction. It leaves space for the audit record.
const maxBatch = 500

// commitChanges commits the changes that f returns. The first maxBatch changes are one transaction, so
// changes that must happen together must come first. The other changes follow in further transactions.
func (o *operator) commitChanges(f func(s decide.Snapshot, now time.Time) ([]updater.Change, error)) error {
	return o.commitChangesIn(func(_ *keyspace.View, s decide.Snapshot, now time.Time) ([]updater.Change, error) {
		return f(s, now)
	})
}

// commitChangesIn is like commitChanges, for a function that also reads the store's view. f runs again after a
// conflict. If no detail is set for the audit record, commitChangesIn sets the current update as the detail.
func (o *operator) commitChangesIn(f func(v *keyspace.View, s decide.Snapshot, now time.Time) ([]updater.Change, error)) error {
	var changes []updater.Change
	err := o.update(func(tx *keyspace.Tx) error {
		s, err := decide.Load(tx.View, o.parts.Version)
		if err != nil {
			return err
		}
		changes, err = f(tx.View, s, time.Now().UTC())
		if err != nil {
			return err
		}

		if o.audit.Detail == "" && s.Current != nil {
			o.setDetail("update %d to %s, attempt %d", s.Current.ID, s.Current.Version, s.Current.Attempt)
		}
		// The other changes follow in further transactions.
		return updater.Apply(tx, changes[:min(len(changes), maxBatch)])
	})
	if err != nil {
		return err
	}
	if len(changes) <= maxBatch {
		return nil
	}

	// The first transaction has also written the audit record.
	return o.open(func(k *keyspace.Space) error {
		for batch := range slices.Chunk(changes[maxBatch:], maxBatch) {
			err := k.Update(o.ctx, func(tx *keyspace.Tx) error { return updater.Apply(tx, batch) })
			if err != nil {
				return console.Hint(fmt.Errorf("the change is incomplete: %w", err), "to complete the change, run the command again")
			}
		}

		return nil
	})
}

// note prints a line to stderr, since stdout is for data.
func (o *operator) note(format string, args ...any) {
	fmt.Fprintln(o.streams.Err, console.EscapeText(fmt.Sprintf(format, args...)))
}

// print prints the text to stdout.
func (o *operator) print(text string) error {
	_, err := io.WriteString(o.streams.Out, text)
	return err
}

// encode prints data as YAML, or as JSON if the format is json. Both forms use the names in the JSON tags.
func (o *operator) encode(format string, data any) error {
	text, err := encodeText(format, data)
	if err != nil {
		return err
	}
	return o.print(text)
}

// printTable prints the table if the format is text, and the data in any other format.
func (o *operator) printTable(format string, data any, table *console.Table) error {
	if format != "text" {
		return o.encode(format, data)
	}
	return table.Write(o.streams.Out, console.CanColour(o.streams.Out))
}

// encodeText returns data as JSON or YAML, both with JSON's order of keys.
func encodeText(format string, data any) (string, error) {
	encoded, err := json.Marshal(data)
	if err != nil {
		return "", fmt.Errorf("internal error: %w", err)
	}

	escaped := text.EscapeJSON(string(encoded))
	if format == "json" {
		return escaped + "\n", nil
	}

	var node yaml.Node
	// JSON is also YAML, and a node keeps the order of its keys.
	if err := yaml.Unmarshal([]byte(escaped), &node); err != nil {
		return "", fmt.Errorf("internal error: %w", err)
	}

	// The node still has JSON's braces and quotes.
	clearStyle(&node)
	out, err := text.MarshalYAML(&node)
	return string(out), err
}

// clearStyle removes JSON's braces and quotes.
func clearStyle(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		clearStyle(c)
	}
}

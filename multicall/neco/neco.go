// Package neco has the commands of `neco`, one file a command: they read and change
// the updater's keys, and print. The daemons do what follows.
//
// It decides nothing about updates; package updater/decide does. Only multicall imports it.
package neco

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"bijou/multicall/console"
	"bijou/multicall/dashboard"
	"bijou/state/keyspace"
	"bijou/state/sanitize"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/record"
	"bijou/updater/release"
)

// Parts describe the program to the commands.
type Parts struct {
	Version  string                      // of this release
	Manifest release.Manifest            // of this release
	Server   Server                      // that neco is called on
	Demo     func(console.Streams) error // shows it all
	// OpenEnvironment opens what a page shows of the environment in use; nil: there is none.
	OpenEnvironment func(ctx context.Context, s console.Streams) (*dashboard.Environment, error)
}

//go:embed help
var helpFiles embed.FS

type grammar struct {
	State string `env:"NECO_STATE" placeholder:"URL" help:"Where neco's keys are: etcd://HOST:PORT,HOST:PORT, or sqlite:PATH."`
}

type commands struct {
	Init       initCmd       `cmd:"" help:"Create neco's keys, and with sqlite: the file."`
	Bootserver bootserverCmd `cmd:"" help:"Register boot servers, unregister them, list them."`
	Config     configCmd     `cmd:"" help:"Set, get, list and unset the configuration."`
	Plan       planCmd       `cmd:"" help:"Show the steps of an update."`
	Update     updateCmd     `cmd:"" help:"Look for releases at once, or update to a version of your choice."`
	Status     statusCmd     `cmd:"" help:"Show how far servers are. Exit code: 0 up to date, 3 updating, 4 stopped, 5 degraded."`
	Stop       stopCmd       `cmd:"" help:"Stop the update that runs."`
	Pause      pauseCmd      `cmd:"" help:"Let no update start."`
	Resume     resumeCmd     `cmd:"" help:"Let updates start again."`
	Repair     repairCmd     `cmd:"" help:"Put right what is not as the last update left it."`
	Retry      retryCmd      `cmd:"" help:"Run the step again that failed."`
	Recover    recoverCmd    `cmd:"" help:"Clear a stopped update away, and have it made again."`
	Diagnose   diagnoseCmd   `cmd:"" help:"Show on one screen what a boot server does, and how it is."`
	History    historyCmd    `cmd:"" help:"List the updates that there were."`
	Dashboard  dashboardCmd  `cmd:"" help:"Show it all on a page in a browser, live."`
	Backup     backupCmd     `cmd:"" help:"Write neco's keys to one file, while the daemons work."`
	Restore    restoreCmd    `cmd:"" help:"Make neco's keys those of a backup."`
	Demo       demoCmd       `cmd:"" help:"Show it all on this machine, in half a minute."`
	Notify     notifyCmd     `cmd:"" help:"Test where alerts go."`
}

// operator is one call of neco.
type operator struct {
	ctx     context.Context
	streams console.Streams
	url     string
	parts   Parts
	audit   record.Audit // what this call does, if it changes anything
}

// reasonFlag belongs to commands that change something.
type reasonFlag struct {
	Why string `placeholder:"REASON" help:"Why; it stands in neco history --audit."`
}

// Main runs one neco command and returns its exit code.
func Main(ctx context.Context, s console.Streams, parts Parts, args []string) int {
	return console.Report(s.Err, run(ctx, s, parts, console.OrHelp(args)))
}

func run(ctx context.Context, s console.Streams, parts Parts, args []string) error {
	var g grammar
	parsed, err := console.Parse(s, console.Command{Name: "neco", Grammar: &g, Commands: &commands{}, Help: helpFiles, Inserts: map[string]func() string{"keys": keyHelp}}, args)
	if err != nil {
		return err
	}
	o := &operator{ctx: ctx, streams: s, url: g.State, parts: parts, audit: record.Audit{Who: console.Caller()}}
	o.audit.What, _, _ = strings.Cut(parsed.Command(), " <")
	for _, flag := range parsed.Flags() {
		if flag.Name == "why" {
			o.audit.Why, _ = parsed.FlagValue(flag).(string)
		}
	}
	return withHint(parsed.Run(o))
}

func (o *operator) setDetail(format string, args ...any) {
	o.audit.Detail = fmt.Sprintf(format, args...)
}

func withHint(err error) error {
	switch {
	case errors.Is(err, updater.ErrNotInitialised):
		return console.Hint(err, "neco init creates neco's keys there; see that --state or $NECO_STATE names the right place")
	case errors.Is(err, context.Canceled):
		return console.Hint(err, "it was interrupted; look at neco status before you repeat it")
	case errors.Is(err, keyspace.ErrAway):
		return console.Hint(err, "see that the store can be reached and nobody keeps it locked; look at neco status before you repeat a change")
	}
	return err
}

func (o *operator) storeURL() (string, error) {
	if o.url == "" {
		return "", console.Hint(console.Usage(errors.New("it is not said where neco's keys are")),
			"give --state URL, or set NECO_STATE, as in: export NECO_STATE=etcd://10.0.0.3:2379", "to try it out on one machine: --state sqlite:/tmp/neco.db")
	}
	return o.url, nil
}

// openTimeout is short, since somebody sits there.
const openTimeout = 5 * time.Second

func (o *operator) open(f func(k *keyspace.Space) error) error {
	url, err := o.storeURL()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(o.ctx, openTimeout)
	defer cancel()
	k, err := updater.OpenStore(ctx, url)
	if err != nil {
		return err
	}
	err = f(k)
	return errors.Join(err, k.Close())
}

func read[T any](o *operator, f func(v *keyspace.View) (T, error)) (result T, err error) {
	err = o.open(func(k *keyspace.Space) (err error) {
		result, err = keyspace.Read(o.ctx, k, f)
		return err
	})
	return result, err
}

func (o *operator) loadSnapshot() (decide.Snapshot, error) {
	return read(o, func(v *keyspace.View) (decide.Snapshot, error) { return decide.Load(v, o.parts.Version) })
}

func newSource(c record.Config) (*release.Source, error) {
	source, err := release.NewSource(c)
	if errors.Is(err, release.ErrNoRepository) {
		err = console.Hint(err, "neco config set github-repository OWNER/NAME")
	}
	return source, err
}

// update writes the audit record in the same transaction as f's changes.
func (o *operator) update(f func(tx *keyspace.Tx) error) error {
	return o.open(func(k *keyspace.Space) error {
		return k.Update(o.ctx, func(tx *keyspace.Tx) error {
			if err := f(tx); err != nil || len(tx.Writes()) == 0 {
				return err
			}
			return updater.Audit(tx, o.audit)
		})
	})
}

// maxBatch is the number of changes in one transaction. It leaves room for the audit record.
const maxBatch = 500

// commitChanges commits what f decides. The first maxBatch changes are one transaction, so what
// must happen together comes first; the others follow in further ones.
func (o *operator) commitChanges(f func(s decide.Snapshot, now time.Time) ([]updater.Change, error)) error {
	return o.commitChangesIn(func(_ *keyspace.View, s decide.Snapshot, now time.Time) ([]updater.Change, error) {
		return f(s, now)
	})
}

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
		return updater.Apply(tx, changes[:min(len(changes), maxBatch)])
	})
	if err != nil || len(changes) <= maxBatch {
		return err
	}
	return o.open(func(k *keyspace.Space) error {
		for batch := range slices.Chunk(changes[maxBatch:], maxBatch) {
			err := k.Update(o.ctx, func(tx *keyspace.Tx) error { return updater.Apply(tx, batch) })
			if err != nil {
				return console.Hint(fmt.Errorf("cannot finish what was begun: %w", err), "give the command again")
			}
		}
		return nil
	})
}

// note prints to stderr: stdout is for data.
func (o *operator) note(format string, args ...any) {
	fmt.Fprintf(o.streams.Err, format+"\n", args...)
}

func (o *operator) print(text string) error {
	_, err := io.WriteString(o.streams.Out, text)
	return err
}

type demoCmd struct{}

func (demoCmd) Run(o *operator) error { return o.parts.Demo(o.streams) }

// Server is the machine that neco is called on, as the daemons there see it.
type Server struct {
	// LRN returns the boot server's number; the error says why this machine has none.
	LRN func() (int, error)
	// Diagnose diagnoses the components of the manifest, the disks that the worker writes to,
	// and the clock; dir is the worker's own folder. It changes nothing.
	Diagnose func(ctx context.Context, dir string, m release.Manifest) ([]record.Diagnosis, error)
	// Journal returns the last lines that a unit of systemd's has logged, or why there are none.
	Journal func(ctx context.Context, unit string, lines int) string
	// Notify sends an alert to all configured places, and returns the names of those that
	// have got it. It returns updater.ErrNoReceiver if there are none.
	Notify func(ctx context.Context, config record.Config, a record.Alert) (names []string, err error)
}

// encode prints data as YAML, or as JSON if that is the format; both name things by their
// JSON tags.
func (o *operator) encode(format string, data any) error {
	text, err := encodeText(format, data)
	if err != nil {
		return err
	}
	return o.print(text)
}

// printTable prints the table, or the data in another format than text.
func (o *operator) printTable(format string, data any, table *console.Table) error {
	if format != "text" {
		return o.encode(format, data)
	}
	return table.Write(o.streams.Out, console.CanColour(o.streams.Out))
}

func encodeText(format string, data any) (string, error) {
	encoded, err := json.Marshal(data)
	if err != nil {
		return "", fmt.Errorf("internal error: %w", err)
	}
	text := sanitize.EscapeJSON(string(encoded))
	if format == "json" {
		return text + "\n", nil
	}
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil { // JSON is YAML; its order stays
		return "", fmt.Errorf("internal error: %w", err)
	}
	clearStyle(&node)
	out, err := sanitize.MarshalYAML(&node)
	return string(out), err
}

// clearStyle drops JSON's braces and quotes.
func clearStyle(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		clearStyle(c)
	}
}

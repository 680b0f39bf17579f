package juju

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
	"bijou/state/text"
)

type statusCmd struct {
	Selectors   []string `arg:"" optional:"" name:"selector" help:"Show only these units, with their machines and relations: by unit or application (web/0, mysql, 'wordpress/*'), machine (0) or status (blocked)."`
	Format      string   `enum:"tabular,yaml,json,dot,oneline,short,line,summary" default:"tabular" placeholder:"FORMAT" help:"Print as tabular, yaml, json, dot (for graphviz), oneline (short and line are the same) or summary; default tabular."`
	outputFlag  `embed:""`
	Wide        bool      `help:"Show each machine, relations among peers, and more columns."`
	Relations   bool      `aliases:"integrations" help:"Show every unit of every relation, instead of one line per relation."`
	Storage     bool      `help:"Also show storage."`
	UTC         bool      `name:"utc" help:"Show times in UTC."`
	Secrets     bool      `name:"show-secrets" help:"Also show passwords and other secrets in statuses of charms."`
	Store       bool      `help:"Also look in the store for newer releases of the applications' charms, in one request."`
	Watch       watchFlag `short:"w" help:"Show the status again after every change, until interrupted; --watch 1s also looks every second."`
	colourFlags `embed:""`
}

// Run prints the status once or, with --watch, again after each change. Without --watch, Run returns an error if a
// selector matches nothing, unless the selector is a status. It then still prints what the other selectors match.
func (c statusCmd) Run(o *operator) error {
	if err := checkGlobs(c.Selectors); err != nil {
		return console.Usage(err)
	}

	if c.UTC {
		// This process shows only the status, and then exits.
		time.Local = time.UTC
	}
	if c.Watch.set && c.Store {
		return console.Usage(errors.New("--store cannot be used with --watch: the command contacts the charm store only once"))
	}
	if c.Watch.set {
		return c.watch(o)
	}

	s, err := readChosen(o, c.readStatus)
	if err != nil {
		return err
	}
	if c.Store {
		// This changes the services in s.
		if err := o.addNewer(s); err != nil {
			return err
		}
	}

	o.noteDamage(s.Damage)
	unmatchedErr := unmatchedError("application, unit, machine or status", s.Unmatched)
	if unmatchedErr != nil {
		unmatchedErr = console.Hint(unmatchedErr, listHint("applications", o.known("services")))
	}
	if len(c.Selectors) > 0 && len(s.Services) == 0 && len(s.Machines) == 0 {
		if unmatchedErr == nil {
			// All selectors are words for a status, and an empty result is their answer.
			o.note("no unit is %s", strings.Join(c.Selectors, " or "))
		}
		return unmatchedErr
	}

	err = c.write(o.streams.Out, s, c.layout(o))
	return errors.Join(err, unmatchedErr)
}

// outputFile returns the file of --output, or "" with --watch, since watch itself replaces the file each
// time.
func (c statusCmd) outputFile() string {
	if c.Watch.set {
		return ""
	}
	return c.Output
}

// noteDamage prints a warning for each damaged part of the state.
func (o *operator) noteDamage(damage []string) {
	for _, line := range damageLines(damage) {
		o.note("%s", line)
	}
}

// damageLines returns a warning for each damaged part of the state, and a hint below the warnings.
func damageLines(damage []string) (lines []string) {
	for _, part := range damage {
		lines = append(lines, "warning: the state is damaged: "+part)
	}
	if len(damage) > 0 {
		lines = append(lines, "hint: to restore a backup in its place: juju restore --replace FILE")
	}
	return lines
}

// readStatus reads the selected part of the status, and which of its machines are confined. It also reads
// storage and the environment's record if the output shows them.
func (c statusCmd) readStatus(v *state.View) (status.Status, error) {
	s, err := c.readSelected(v)
	if err != nil {
		return s, err
	}
	if len(s.Machines) > 0 {
		if err := s.AddConfinement(v); err != nil {
			return s, err
		}
	}

	showsRecord := c.Format == "json" || c.Format == "yaml"
	if showsRecord {
		s.Environment, err = v.Environment()
		if err != nil {
			return s, err
		}
	}
	showsStorage := c.Storage || showsRecord
	if !showsStorage {
		return s, nil
	}

	if len(c.Selectors) > 0 {
		s.Storage, err = v.UnitStorages(slices.Collect(maps.Keys(allUnits(s)))...)
	} else {
		s.Storage, err = v.Storages()
	}
	return s, err
}

// readSelected reads the part of the status that the selectors match. If a selector is a machine's id or a
// status, it must first read everything.
func (c statusCmd) readSelected(v *state.View) (status.Status, error) {
	options := status.Options{Now: time.Now(), Globs: c.Selectors, Secrets: c.Secrets}
	if !slices.ContainsFunc(c.Selectors, selectsByMore) {
		return status.Read(v, options)
	}

	options.Globs = nil
	s, err := status.Read(v, options)
	return selectStatus(s, c.Selectors), err
}

// unmatchedError returns the error for patterns that match nothing, or nil if globs is empty. kind names what the
// patterns can match, such as "application or unit".
func unmatchedError(kind string, globs []string) error {
	if len(globs) == 0 {
		return nil
	}
	return console.Hint(fmt.Errorf("no %s matches %s", kind, strings.Join(quoteAll(globs), ", ")),
		"a pattern matches a whole name: mysql, 'mysql*', 'mysql/*'; juju status shows all names")
}

// checkGlobs returns an error for the first pattern whose syntax is wrong.
func checkGlobs(globs []string) error {
	for _, g := range globs {
		if _, err := path.Match(g, ""); err != nil {
			return fmt.Errorf("%q is not a pattern: %w", g, err)
		}
	}
	return nil
}

// quoteAll returns each pattern in quotes.
func quoteAll(patterns []string) []string {
	quoted := make([]string, len(patterns))
	for i, p := range patterns {
		quoted[i] = strconv.Quote(p)
	}
	return quoted
}

// layout returns the layout of tables. On a terminal, tables have a width, and can have colours and a heading.
// --color also gives them colours elsewhere, except in the file of --output.
func (c statusCmd) layout(o *operator) statusTables {
	out := o.streams.Out
	t := statusTables{wide: c.Wide, relations: c.Relations, storage: c.Storage, now: time.Now()}
	if c.Output != "" {
		return t
	}

	t.coloured = c.canColour(out)
	if !console.IsTerminal(out) {
		return t
	}

	t.width = console.SizeOf(out).Width
	// Only a terminal that --watch can redraw gets a heading. On others, the time in the heading would make each
	// status differ from the last.
	if e, err := o.home.Choose(o.name); err == nil && console.CanRedraw(out) {
		t.heading = []string{e.Name, o.parts.Version, time.Now().Format(time.DateTime), text.HideSecrets(e.State)}
	}
	return t
}

// render returns the status in the chosen format. t is the layout of the default format.
func (c statusCmd) render(s status.Status, t statusTables) ([]byte, error) {
	var text bytes.Buffer
	err := c.write(&text, s, t)
	return text.Bytes(), err
}

// write writes the status in the chosen format. t is the layout of the default format.
func (c statusCmd) write(w io.Writer, s status.Status, t statusTables) error {
	switch c.Format {
	case "yaml":
		return writeStatusYAML(w, c.shownStatus(s))
	case "json":
		encoded, err := json.Marshal(c.shownStatus(s))
		if err != nil {
			return err
		}

		_, err = io.WriteString(w, text.EscapeJSON(string(encoded))+"\n")
		return err
	case "dot":
		return writeDot(w, s)
	case "oneline", "short", "line":
		return writeOneline(w, s)
	case "summary":
		return writeSummary(w, s)
	}

	// All other formats are tables.
	t.status = s
	return t.write(w)
}

// shownStatus returns the status as the formats json and yaml show it. With --watch it has no timestamp.
func (c statusCmd) shownStatus(s status.Status) jujuStatus {
	view := newJujuStatus(s)
	if c.Watch.set {
		// The controller's timestamp would make each status differ from the last.
		view.Controller = nil
	}
	return view
}

// watch shows the status, and again after each change or interval of watchInterval, until the operator interrupts
// it or the reader has closed the pipe. It does not print the same status twice in a row, but it writes the file of
// --output each time. Selectors that match nothing are not an error, since they may match later.
func (c statusCmd) watch(o *operator) error {
	ctx, stop := console.UntilUnread(o.ctx, o.streams.Out)
	defer stop()
	screen := console.NewScreen(o.streams.Out)

	return o.openChosen(func(s *state.State) error {
		f := follower{o: o, state: s, settleInterval: settleInterval, scopes: []state.Scope{state.WatchAll()}}
		if interval := c.watchInterval(o); interval > 0 {
			f.pollTimeout = func() time.Duration { return interval }
		}
		var noted []string // the damage that was printed last

		// The follower calls the returned function after the view has ended.
		f.read = func(v *state.View) (func() error, error) {
			current, err := c.readStatus(v)
			if err != nil {
				return nil, err
			}
			rendered, err := c.render(current, c.layout(o))
			if err != nil {
				return nil, err
			}

			return func() error {
				shown := string(rendered)
				if c.Output == "" && console.CanRedraw(o.streams.Out) {
					// The warnings are part of the text, since drawing overwrites anything else.
					shown += joinLines(damageLines(current.Damage))
				} else if !slices.Equal(noted, current.Damage) {
					o.noteDamage(current.Damage)
					noted = current.Damage
				}

				return c.showStatus(o, screen, shown)
			}, nil
		}

		return f.follow(ctx)
	})
}

// agoInterval is how often to redraw a screen that shows how long ago things happened.
const agoInterval = 10 * time.Second

// watchInterval returns the interval at which watch reads again if nothing has changed. 0 means never.
func (c statusCmd) watchInterval(o *operator) time.Duration {
	if c.Watch.interval != 0 {
		return c.Watch.interval
	}

	showsAgo := c.Output == "" && c.Format == "tabular" && console.CanRedraw(o.streams.Out)
	if showsAgo {
		return agoInterval
	}
	return 0
}

// joinLines returns the escaped lines as one text.
func joinLines(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(text.Escape(line) + "\n")
	}
	return b.String()
}

// showStatus writes the text of a status to the file of --output or, without that flag, shows it on the screen. An
// empty text on the screen is replaced by a sentence.
func (c statusCmd) showStatus(o *operator, screen *console.Screen, text string) error {
	if c.Output != "" {
		return writeOutput(o, c.Output, []byte(text))
	}

	if text == "" {
		text = "the model is empty\n"
	}
	return screen.Show(text, c.separator())
}

// separator returns the line that --watch prints between two statuses if it cannot redraw the terminal.
func (c statusCmd) separator() string {
	switch c.Format {
	case "json":
		// In this format each document is a line.
		return ""
	case "dot":
		// This is a comment in graphviz's language.
		return "// ---\n"
	}

	return "---\n"
}

// yamlStream writes mappings a few entries at a time, since a call of the yaml package needs many times the
// memory of its output. The output is the same as for a single call.
type yamlStream struct {
	w   *bufio.Writer
	err error
}

// writeStatusYAML writes the status as YAML. It encodes the units in batches, since a status of very many units
// would need a lot of memory as one document.
func writeStatusYAML(w io.Writer, s jujuStatus) error {
	y := &yamlStream{w: bufio.NewWriter(w)}
	y.add(0, "model", s.Model)
	writeYAMLMap(y, 0, "machines", s.Machines, nil)

	// Each entry is written without its units. They follow in batches.
	writeYAMLMap(y, 0, "applications", s.Applications, func(depth int, name string, v any) {
		application := v.(jujuApplication)
		units := application.Units
		application.Units = nil
		y.add(depth, name, application)
		if len(units) > 0 {
			writeYAMLMap(y, depth+1, "units", units, nil)
		}
	})

	writeYAMLMap(y, 0, "services", s.Services, func(depth int, name string, v any) {
		service := v.(status.Service)
		units := service.Units
		service.Units = nil
		y.add(depth, name, service)
		if len(units) > 0 {
			writeYAMLMap(y, depth+1, "units", units, nil)
		}
	})

	y.addRelations(s.Relations)

	if s.Storage != nil {
		y.add(0, "storage", s.Storage)
	}
	if s.Controller != nil {
		y.add(0, "controller", s.Controller)
	}
	if s.Provisioner != nil {
		y.add(0, "provisioner", s.Provisioner)
	}
	if len(s.Damage) > 0 {
		y.add(0, "damage", s.Damage)
	}
	if y.err != nil {
		return y.err
	}

	return y.w.Flush()
}

// yamlBatch is how many entries one call of the yaml package prints.
const yamlBatch = 50

// writeYAMLMap writes the entries as a mapping with the given name, indented for the depth. It calls add to write
// each entry, one level deeper. If add is nil, it writes the entries as the yaml package does, and passes at most
// yamlBatch entries to the package at a time. Without entries, it writes an empty mapping.
func writeYAMLMap[T any](
	y *yamlStream,
	depth int,
	name string,
	entries map[string]T,
	add func(depth int, name string, entry any),
) {
	if len(entries) == 0 {
		y.add(depth, name, struct{}{})
		return
	}
	y.writeLines(depth, []byte(name+":\n"))

	for keys := range slices.Chunk(sortAsYAML(y, entries), yamlBatch) {
		batch := map[string]T{}
		for _, key := range keys {
			batch[key] = entries[key]
			if add != nil {
				add(depth+1, key, entries[key])
			}
		}

		if add == nil {
			y.writeLines(depth+1, y.encode(batch))
		}
	}
}

// sortAsYAML returns the keys of entries in the order in which the yaml package prints them. entries must not be
// empty, and all or none of its keys must be the names of units. sortAsYAML sorts the names of units without the
// package, since there can be very many units. For other keys, it returns nil if the stream has an error.
func sortAsYAML[T any](y *yamlStream, entries map[string]T) []string {
	keys := slices.Collect(maps.Keys(entries))
	if charm.IsUnit(keys[0]) {
		charm.SortUnits(keys)
		return keys
	}

	// The package sorts a mapping of these keys, whatever its values are.
	mapping := map[string]bool{}
	for _, key := range keys {
		mapping[key] = true
	}
	var n yaml.Node
	err := n.Encode(mapping)
	y.err = errors.Join(y.err, err)
	if y.err != nil {
		return nil
	}

	// The content of a mapping alternates between keys and values.
	for i := range keys {
		keys[i] = n.Content[2*i].Value
	}
	return keys
}

// add writes one entry of a mapping, indented for the depth.
func (y *yamlStream) add(depth int, name string, entry any) {
	y.writeLines(depth, y.encode(map[string]any{name: entry}))
}

// addRelations writes the relations. It writes each relation without its ends, then each end without its units,
// and then the end's units.
func (y *yamlStream) addRelations(relations map[string]status.Relation) {
	writeYAMLMap(y, 0, "relations", relations, func(depth int, name string, v any) {
		relation := v.(status.Relation)
		ends := relation.Services
		relation.Services = nil
		// The last line would be the empty mapping of services.
		y.addButLast(depth, name, relation)

		writeYAMLMap(y, depth+1, "services", ends, func(depth int, name string, v any) {
			end := v.(status.RelationEnd)
			units := end.Units
			end.Units = nil
			// The last line would be the empty mapping of units.
			y.addButLast(depth, name, end)
			writeYAMLMap(y, depth+1, "units", units, nil)
		})
	})
}

// addButLast writes one entry without its last line. That line is an empty mapping, and the caller writes the
// filled mapping next.
func (y *yamlStream) addButLast(depth int, name string, entry any) {
	text := y.encode(map[string]any{name: entry})
	last := bytes.LastIndexByte(bytes.TrimSuffix(text, []byte("\n")), '\n')
	y.writeLines(depth, text[:last+1])
}

// encode returns the entries as YAML. It sets the stream's error if they cannot be encoded.
func (y *yamlStream) encode(entries any) []byte {
	encoded, err := text.MarshalYAML(entries)
	if err != nil {
		y.err = err
	}
	return encoded
}

// writeLines writes the lines with the indentation of the depth. An empty line stays empty.
func (y *yamlStream) writeLines(depth int, text []byte) {
	indent := bytes.Repeat([]byte("    "), depth)
	for line := range bytes.Lines(text) {
		// An empty line consists of its line end. Flush returns the error of a failed write.
		if len(line) > 1 {
			_, _ = y.w.Write(indent)
		}
		_, _ = y.w.Write(line)
	}
}

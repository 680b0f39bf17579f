package author

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"

	"bijou/state/charm"
)

// touchedMark begins the line in which a script's process reports the parts of the charm that the script has
// touched. All output of hooks and of the script comes before it.
const touchedMark = "charm-test-touched: "

// touched contains the names of a charm's parts by kind: the parts that tests can touch, or those that tests
// have touched. A test touches a part by running it or, for an option, by setting it.
type touched map[string][]string

// kinds are the kinds of parts, in the order in which they are printed.
var kinds = []string{"hook", "action", "option", "relation"}

// add adds a part, unless t already contains it.
func (t touched) add(kind, name string) {
	if !slices.Contains(t[kind], name) {
		t[kind] = append(t[kind], name)
	}
}

// findTouchable returns all parts of the charm that a test can touch. A hook counts if it has a file in hooks/, or
// if the program dispatch, or a Python file in src/ or a subdirectory of src/, has its name in double quotes, or with
// underscores after "on.".
func (a *author) findTouchable(dir string) (touched, error) {
	read, err := charm.ReadDir(dir)
	if err != nil {
		return nil, err
	}

	all := touched{
		"action":   slices.Collect(maps.Keys(read.Actions)),
		"option":   slices.Collect(maps.Keys(read.Config.Options)),
		"relation": slices.Collect(maps.Keys(read.Meta.Declared)),
	}

	var source []byte
	for _, pattern := range []string{"dispatch", "src/*.py", "src/*/*.py"} {
		// Glob fails only for an invalid pattern.
		files, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, file := range files {
			// Coverage is only an estimate, so a file that cannot be read is left out.
			data, _ := os.ReadFile(file)
			source = append(source, data...)
		}
	}

	storages := slices.Collect(maps.Keys(read.Meta.Storage))
	for _, hook := range a.parts.Rules.Hooks(all["relation"], storages) {
		_, err := os.Stat(filepath.Join(dir, "hooks", hook))
		hasFile := err == nil
		isQuoted := bytes.Contains(source, []byte(`"`+hook+`"`))
		isObserved := bytes.Contains(source, []byte("on."+strings.ReplaceAll(hook, "-", "_")))
		if hasFile || isQuoted || isObserved {
			all.add("hook", hook)
		}
	}

	return all, nil
}

// findTouched returns the parts in all that the script has touched: hooks and actions that the charm's units have
// begun, relations of which a hook has begun, and options to which the script gives a value.
func (r *scriptRun) findTouched(archive *txtar.Archive, all touched) touched {
	found := touched{}
	ctx, stop := context.WithTimeout(r.ctx, lastScreenTimeout)
	defer stop()
	// After an error, the lines that were read count.
	log, _ := readLog(ctx, r.state)
	journal := formatJournal(log, nil)
	for line := range strings.Lines(journal) {
		words := strings.Fields(line)
		if len(words) < 2 || !runsCharm(words[0], r.readCharmName()) {
			continue
		}

		for _, kind := range []string{"hook", "action"} {
			if slices.Contains(all[kind], words[1]) {
				found.add(kind, words[1])
			}
		}
		for _, relation := range all["relation"] {
			if strings.HasPrefix(words[1], relation+"-relation-") {
				found.add("relation", relation)
			}
		}
	}

	// The comment of a txtar archive contains the script's commands.
	text := archive.Comment
	for _, f := range archive.Files {
		text = append(append(slices.Clip(text), '\n'), f.Data...)
	}
	for _, option := range all["option"] {
		// The script sets an option with OPTION=VALUE, or with OPTION: VALUE in a file.
		if regexp.MustCompile(`(?m)(^|[\s'"])` + regexp.QuoteMeta(option) + `['"]?[=:]`).Match(text) {
			found.add("option", option)
		}
	}

	return found
}

// readCharmName returns the name of the charm under test, or "" if it cannot be read.
func (r *scriptRun) readCharmName() string {
	read, err := charm.ReadDir(r.Dir)
	if err != nil {
		return ""
	}
	return read.Meta.Name
}

// runsCharm reports whether the unit's service runs the charm called name. If it can read the charm of no unit of the
// service, for example because the units are gone, it compares the service's name with name.
func runsCharm(unit, name string) bool {
	service, _, _ := strings.Cut(unit, "/")
	// The unit itself may be gone, so the charm of any unit of its service counts.
	for _, dir := range unitDirs(service) {
		if read, err := charm.ReadDir(filepath.Join(dir, "charm")); err == nil {
			return read.Meta.Name == name
		}
	}
	return service == name
}

// printTouched prints the touched parts for the process that has started this one, which reads them with
// takeTouched.
func (r *scriptRun) printTouched(archive *txtar.Archive) error {
	all, err := r.findTouchable(r.Dir)
	if err != nil {
		return err
	}

	data, err := json.Marshal(r.findTouched(archive, all))
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}

	fmt.Fprintf(r.streams.Out, "\n%s%s\n", touchedMark, data)
	return nil
}

// takeTouched adds the parts in the report of printTouched to t. The argument out is the output of a script's
// process. It returns the output before the report, or all of the output if there is no report.
func (t touched) takeTouched(out []byte) (beforeReport []byte) {
	begin := bytes.LastIndex(out, []byte("\n"+touchedMark))
	if begin < 0 {
		return out
	}

	var reported touched
	line, _, _ := bytes.Cut(out[begin+1+len(touchedMark):], []byte("\n"))
	if err := json.Unmarshal(line, &reported); err != nil {
		// This is not a report, so the line belongs to the script's own output.
		return out
	}

	for kind, names := range reported {
		for _, name := range names {
			t.add(kind, name)
		}
	}
	return out[:begin]
}

// printCoverage prints for each kind how many of the parts in all are also in covered, and then a line for each
// part that is not.
func printCoverage(w io.Writer, all, covered touched) {
	var counts, missed []string
	for _, kind := range kinds {
		count := 0
		for _, name := range slices.Sorted(slices.Values(all[kind])) {
			if slices.Contains(covered[kind], name) {
				count++
				continue
			}
			missed = append(missed, fmt.Sprintf("not covered: %s %s\n", kind, name))
		}
		counts = append(counts, fmt.Sprintf("%d of %d %ss", count, len(all[kind]), kind))
	}

	fmt.Fprintf(w, "coverage: %s\n%s", strings.Join(counts, ", "), strings.Join(missed, ""))
}

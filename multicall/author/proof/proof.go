// Package proof reads a charm's folder as deploy, the agents and the hook tools will, and says what
// they would refuse, and what they would accept and its author regret.
//
// It runs nothing of the charm, and knows nothing of environments. multicall/author imports it.
package proof

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"bijou/multicall/console"
	"bijou/state/charm"
)

// Level says how serious a finding is.
type Level string

// The levels.
const (
	Error   Level = "error"   // deploy refuses it, or it cannot run
	Warning Level = "warning" // it is accepted, and very likely not what is meant
	Info    Level = "info"    // what else an author may want to know
	Fixed   Level = "fixed"   // Fix has changed it
)

// Finding is one thing that was found in a charm.
type Finding struct {
	Level   Level  `json:"level"`
	File    string `json:"file"` // below the charm's folder
	Line    int    `json:"line"` // 0: it is about the whole file
	Message string `json:"message"`
}

// Rules tell what the rest of the binary knows of hooks and their tools.
type Rules struct {
	Tools []string // their names
	// The arguments of a call, or why a tool would refuse it; an empty word may be any.
	CheckCall func(argv []string) (args []string, _ error)
	Hooks     func(relations, storages []string) []string // the hooks of a charm that has those
}

// proofer reads one charm.
type proofer struct {
	rules     Rules
	dir       string
	root      *os.Root
	found     []Finding
	documents map[string]*yaml.Node // those that are dictionaries, by file
	examined  map[string]bool       // files that are run, by where links lead
	mends     []mend
}

// Check returns its findings in the charm's directory, sorted by file and line.
func Check(dir string, r Rules) ([]Finding, error) {
	found, _, err := examine(dir, r)
	return found, err
}

// examine returns the findings about a charm, and the mends of those findings that have exactly one.
func examine(dir string, r Rules) ([]Finding, []mend, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read charm: %w", err)
	}
	defer root.Close()

	p := &proofer{rules: r, dir: dir, root: root, documents: map[string]*yaml.Node{}, examined: map[string]bool{}}
	p.checkDocuments()
	p.checkDeploy()
	p.checkPrograms()
	p.checkCalls()
	slices.SortStableFunc(p.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})

	return slices.Compact(p.found), p.mends, nil
}

func (p *proofer) add(level Level, file string, line int, format string, args ...any) {
	p.found = append(p.found, Finding{
		Level:   level,
		File:    file,
		Line:    line,
		Message: fmt.Sprintf(format, args...),
	})
}

// checkDeploy reads and packs the charm as deploy does.
func (p *proofer) checkDeploy() {
	read, err := charm.ReadDir(p.dir)
	if err == nil {
		_, err = charm.Archive(p.dir, io.Discard, charm.ArchiveOptions{Tools: p.rules.Tools})
	}
	metadata := p.fileOf("metadata.yaml")
	if err != nil {
		p.addLocated(Error, metadata,
			strings.TrimPrefix(err.Error(), fmt.Sprintf("cannot read charm %q: ", p.dir)))
	}

	if read == nil {
		return
	}

	required, optional := charm.Unsupported(read.Meta, charm.JujuVersion)
	for _, what := range required {
		p.addLocated(Error, metadata, "the charm needs what bijou does not have: "+what)
	}
	for _, what := range optional {
		p.addLocated(Warning, metadata, "bijou does not have what the charm can do without: "+what)
	}

	for name, action := range read.Actions {
		if defaults, err := action.Check(nil); err == nil {
			if _, err := action.Check(defaults); err != nil {
				p.addLocated(Warning, p.fileOf("actions.yaml"),
					fmt.Sprintf("action %q has a default that it refuses: %v", name, err))
			}
		}
	}

	if read.Meta.Summary == "" || read.Meta.Description == "" {
		p.add(Warning, metadata, 0, "Juju refuses a charm without a summary and a description")
	}
	d, mark := read.Dialect()
	if read.Meta.HookDialect == "" {
		p.add(Info, metadata, 0, "its hooks speak %s: %s; hook-dialect in the metadata would say so", d, mark)
	}
}

var (
	lineNumber = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\bline (\d+): `)
	})
	quotedWord = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`"([^"]+)"`)
	})
)

// addLocated adds a finding about the file, or about the file that the message begins with. Its line is the
// one in the message, or else the line of the first word that the message quotes.
func (p *proofer) addLocated(level Level, file, message string) {
	if name, rest, _ := strings.Cut(message, ": "); p.has(name) {
		file = name
		message = rest
	}
	message = strings.TrimPrefix(message, "yaml: ")
	line := 0
	if n := lineNumber().FindStringSubmatch(message); n != nil {
		line, _ = strconv.Atoi(n[1])
		message = strings.Replace(message, n[0], "", 1)
	}

	for _, word := range quotedWord().FindAllStringSubmatch(message, -1) {
		if node := findScalar(p.documents[file], word[1]); line == 0 && node != nil {
			line = node.Line
		}
	}
	p.add(level, file, line, "%s", message)
}

// findScalar returns the node with that value, or nil.
func findScalar(n *yaml.Node, value string) *yaml.Node {
	if n == nil || n.Kind == yaml.ScalarNode && n.Value == value {
		return n
	}

	for _, child := range n.Content {
		if found := findScalar(child, value); found != nil {
			return found
		}
	}

	return nil
}

// fileOf returns the file that has the content of the named one: that file itself, or charmcraft.yaml.
func (p *proofer) fileOf(name string) string {
	if !p.has(name) && p.has("charmcraft.yaml") {
		return "charmcraft.yaml"
	}
	return name
}

func (p *proofer) has(name string) bool {
	info, err := p.root.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// read returns nothing of a file that cannot be read.
func (p *proofer) read(name string) []byte {
	f, err := p.root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, charm.MaxYAML+1))
	return data
}

// suggest returns the end of a message about a name that is none of those known.
func suggest(name string, known []string) string {
	if meant := console.NearestWord(name, known); meant != "" {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return ""
}

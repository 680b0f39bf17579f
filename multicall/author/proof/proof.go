// Package proof checks a charm's directory. It reads the charm as deploy, the agents and the hook
// tools do. It reports the errors that these would report, and other probable mistakes.
//
// The package does not run any part of the charm, and does not use an environment.
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

// Level is the severity of a finding.
type Level string

// The levels.
const (
	Error   Level = "error"   // deploy refuses the charm, or a program cannot run
	Warning Level = "warning" // the charm is accepted, but this is very likely a mistake
	Info    Level = "info"    // other facts that an author may want to know
	Fixed   Level = "fixed"   // Fix has changed this
)

// Finding is a fault or other fact that was found in a charm.
type Finding struct {
	Level   Level  `json:"level"`
	File    string `json:"file"` // below the charm's directory
	Line    int    `json:"line"` // 0 if the finding is about the whole file
	Message string `json:"message"`
}

// Rules are the binary's rules for hooks and hook tools.
type Rules struct {
	Tools []string // the names of the hook tools
	// CheckCall returns the arguments of a call of a hook tool, without its options. It returns an error if
	// the tool would refuse the call. An empty word of argv stands for any word.
	CheckCall func(argv []string) (args []string, _ error)
	// Hooks returns the hooks of a charm with these relations and storages.
	Hooks func(relations, storages []string) []string
}

// proofer reads one charm.
type proofer struct {
	rules     Rules
	dir       string
	root      *os.Root
	found     []Finding
	documents map[string]*yaml.Node // the documents of YAML files, by file
	examined  map[string]bool       // programs that were examined, by their targets
	mends     []mend
}

// Check checks the charm in a directory, and returns the findings sorted by file and line. It returns an
// error only if it cannot open the directory.
func Check(dir string, r Rules) ([]Finding, error) {
	found, _, err := examine(dir, r)
	return found, err
}

// examine returns the findings about a charm, and the changes that fix those findings that have only one possible fix.
// It returns an error only if it cannot open the directory.
func examine(dir string, r Rules) ([]Finding, []mend, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read charm: %w", err)
	}
	defer root.Close()

	p := &proofer{rules: r, dir: dir, root: root, documents: map[string]*yaml.Node{}, examined: map[string]bool{}}
	// checkDocuments comes first, since the other checks use the documents that it reads.
	p.checkDocuments()
	p.checkDeploy()
	p.checkPrograms()
	p.checkCalls()
	slices.SortStableFunc(p.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})

	return slices.Compact(p.found), p.mends, nil
}

// add adds a finding. The format and its arguments are the message. The argument line is 0 if the finding is
// about the whole file.
func (p *proofer) add(level Level, file string, line int, format string, args ...any) {
	p.found = append(p.found, Finding{
		Level:   level,
		File:    file,
		Line:    line,
		Message: fmt.Sprintf(format, args...),
	})
}

// checkDeploy reads and packs the charm as deploy does, and reports the errors. If the charm can be read, it
// also reports features that bijou does not have, wrong default values of actions, missing metadata, and the
// dialect of the hooks if the metadata does not state it.
func (p *proofer) checkDeploy() {
	metadata := p.fileOf("metadata.yaml")
	addError := func(err error) {
		text := strings.TrimPrefix(err.Error(), fmt.Sprintf("cannot read charm %q: ", p.dir))
		p.addLocated(Error, metadata, text)
	}

	read, err := charm.ReadDir(p.dir)
	if err != nil {
		addError(err)
		return
	}
	if _, err := charm.Archive(p.dir, io.Discard, charm.ArchiveOptions{Tools: p.rules.Tools}); err != nil {
		addError(err)
	}

	required, optional := charm.Unsupported(read.Meta, charm.JujuVersion)
	for _, feature := range required {
		p.addLocated(Error, metadata, "the charm requires a feature that bijou does not have: "+feature)
	}
	for _, feature := range optional {
		p.addLocated(Warning, metadata, "bijou does not have an optional feature of the charm: "+feature)
	}

	for name, action := range read.Actions {
		// Without arguments, Check returns the default values.
		defaults, err := action.Check(nil)
		if err != nil {
			// The action refuses to run without arguments, so it never runs with its defaults alone.
			continue
		}
		if _, err := action.Check(defaults); err != nil {
			p.addLocated(Warning, p.fileOf("actions.yaml"),
				fmt.Sprintf("action %q does not accept its own default values: %v", name, err))
		}
	}

	if read.Meta.Summary == "" || read.Meta.Description == "" {
		p.add(Warning, metadata, 0, "Juju refuses a charm that has no summary or no description")
	}
	dialect, reason := read.Dialect()
	if read.Meta.HookDialect == "" {
		p.add(Info, metadata, 0, "the hooks of this charm use the %s dialect, because %s; to state this explicitly, set hook-dialect in the metadata", dialect, reason)
	}
}

var (
	// lineNumber matches the line in a message of the YAML parser.
	lineNumber = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\bline (\d+): `)
	})
	quotedWord = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`"([^"]+)"`)
	})
)

// addLocated adds a finding, and finds its file and line in the message. If the message begins with the name
// of one of the charm's files, the finding is about that file instead of the given one. If the message
// contains a line number, this is the finding's line. Otherwise the finding's line is that of the first
// quoted word that the file contains, or 0 if there is none. addLocated removes the file, the line number and
// the parser's prefix "yaml: " from the message.
func (p *proofer) addLocated(level Level, file, message string) {
	if name, text, _ := strings.Cut(message, ": "); p.has(name) {
		file = name
		message = text
	}
	message = strings.TrimPrefix(message, "yaml: ")

	line := 0
	if number := lineNumber().FindStringSubmatch(message); number != nil {
		line, _ = strconv.Atoi(number[1])
		message = strings.Replace(message, number[0], "", 1)
	}

	for _, word := range quotedWord().FindAllStringSubmatch(message, -1) {
		if line != 0 {
			break
		}
		if node := findScalar(p.documents[file], word[1]); node != nil {
			line = node.Line
		}
	}
	p.add(level, file, line, "%s", message)
}

// findScalar returns the first scalar node below n with this value, or n itself if it is one. It returns nil
// if there is none.
func findScalar(n *yaml.Node, value string) *yaml.Node {
	if n == nil {
		return nil
	}
	if n.Kind == yaml.ScalarNode && n.Value == value {
		return n
	}

	for _, child := range n.Content {
		if found := findScalar(child, value); found != nil {
			return found
		}
	}

	return nil
}

// fileOf returns the name of the file for findings about the contents of the named file. This is
// charmcraft.yaml if the charm has charmcraft.yaml and not the named file.
func (p *proofer) fileOf(name string) string {
	if !p.has(name) && p.has("charmcraft.yaml") {
		return "charmcraft.yaml"
	}
	return name
}

// has reports whether the charm has a regular file with this path, or a symlink to one in the charm.
func (p *proofer) has(name string) bool {
	info, err := p.root.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// read returns the content of a file, up to one byte more than charm.MaxYAML, so that charm.ParseYAML refuses a
// larger file. It returns nothing if the file cannot be opened, and the beginning if the rest cannot be read.
func (p *proofer) read(name string) []byte {
	f, err := p.root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, charm.MaxYAML+1))
	return data
}

// suggest returns the end of a message about an unknown name, which suggests the most similar known name. It
// returns "" if no known name is similar.
func suggest(name string, known []string) string {
	if meant := console.NearestWord(name, known); meant != "" {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return ""
}

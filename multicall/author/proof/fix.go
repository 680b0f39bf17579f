package proof

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"bijou/multicall/console"
	"bijou/state/osutil"
)

// mend is a change of the charm that fixes a finding.
type mend struct {
	step    step
	fixed   Finding
	column  int // the column of a key
	perform func() error
}

// step is the order in which fixes are made. For example, the names that a key declares are known only once the key is
// correct.
type step int

const (
	mendsKey step = iota
	mendsLines
	mendsName
	mendsMode
)

// maxRounds is how many times Fix examines the charm. It does so after each step.
const maxRounds = 20

// Fix fixes the faults of a charm that have only one possible fix: misspelled keys and names of hooks with a single
// possible meaning, CRLF in scripts, and scripts that are not executable. It returns its changes in the order in
// which it made them, also with an error.
func Fix(dir string, r Rules) (fixed []Finding, _ error) {
	for range maxRounds {
		_, mends, err := examine(dir, r)
		if err != nil || len(mends) == 0 {
			return fixed, err
		}

		// Fix from the end of a file, since a change moves the text after it.
		slices.SortStableFunc(mends, func(a, b mend) int {
			return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.fixed.File, b.fixed.File),
				cmp.Compare(b.fixed.Line, a.fixed.Line), cmp.Compare(b.column, a.column))
		})
		for _, m := range mends {
			if m.step != mends[0].step {
				break
			}
			if err := m.perform(); err != nil {
				return fixed, fmt.Errorf("cannot fix %s: %w", m.fixed.File, err)
			}
			fixed = append(fixed, m.fixed)
		}
	}

	return fixed, nil
}

// mendedPlace is where a mend changes the charm. Line and column are 0 for a mend of the whole file.
type mendedPlace struct {
	file         string
	line, column int
}

// addMend adds a mend. The format and its arguments are the message of the finding that is fixed.
func (p *proofer) addMend(s step, at mendedPlace, perform func() error, format string, args ...any) {
	fixed := Finding{Level: Fixed, File: at.file, Line: at.line, Message: fmt.Sprintf(format, args...)}
	p.mends = append(p.mends, mend{step: s, fixed: fixed, column: at.column, perform: perform})
}

// mendKey corrects a key that is a misspelling of one known key, unless the dictionary also has that key.
func (p *proofer) mendKey(file string, n, key *yaml.Node, known []string) {
	meant := console.OnlySlip(key.Value, known)
	candidates := 0
	for other := range pairs(n) {
		if console.OnlySlip(other.Value, known) == meant {
			candidates++
		}
	}

	if _, isThere := replaceKey(p.read(file), key, meant); meant == "" || candidates > 1 || !isThere {
		return
	}

	target := p.target(file)
	p.addMend(mendsKey, mendedPlace{file, key.Line, key.Column}, func() error {
		data, err := os.ReadFile(target)
		if err != nil {
			return err
		}
		// If the key is no longer there, data stays as it is.
		mended, _ := replaceKey(data, key, meant)
		return osutil.WriteFile(target, mended, 0o644)
	}, "key %q is now %q", key.Value, meant)
}

// replaceKey replaces the key at its line and column by the word, and keeps its quotes. It returns data unchanged
// and false if the file writes the key differently, such as with escapes.
func replaceKey(data []byte, key *yaml.Node, word string) (mended []byte, isThere bool) {
	lines := bytes.SplitAfter(data, []byte("\n"))
	if key.Line > len(lines) {
		return data, false
	}
	// Columns count characters.
	line := []rune(string(lines[key.Line-1]))
	if key.Column > len(line) {
		return data, false
	}

	before := string(line[:key.Column-1])
	after := string(line[key.Column-1:])
	quote := ""
	if key.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		quote = after[:1]
	}
	rest, isThere := strings.CutPrefix(after, quote+key.Value+quote)
	if !isThere {
		return data, false
	}

	lines[key.Line-1] = []byte(before + quote + word + quote + rest)
	return bytes.Join(lines, nil), true
}

// mendLines replaces the CRLF in a script by LF.
func (p *proofer) mendLines(file string, data []byte) {
	target := p.target(file)
	p.addMend(mendsLines, mendedPlace{file: file}, func() error {
		return osutil.WriteFile(target, bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), 0o755)
	}, "the lines now end in LF only")
}

// mendName renames a file whose name is a misspelling of only one of the names, unless a file with that name, or a
// similar one, exists. It never changes the relation or the storage in a hook's name.
func (p *proofer) mendName(file string, names []string) {
	folder, name := path.Split(file)
	meant := console.OnlySlip(name, withSubject(name, names, isEqual))
	// The directory exists, since it has the file.
	entries, _ := os.ReadDir(filepath.Join(p.dir, folder))
	isRival := func(e os.DirEntry) bool {
		return e.Name() != name && console.OnlySlip(e.Name(), names) == meant
	}
	if meant == "" || slices.ContainsFunc(entries, isRival) {
		return
	}

	p.addMend(mendsName, mendedPlace{file: file}, func() error {
		return os.Rename(filepath.Join(p.dir, file), filepath.Join(p.dir, folder, meant))
	}, "the file is now called %q", path.Join(folder, meant))
}

// mendMode makes a script executable for every user who can read it.
func (p *proofer) mendMode(file string) {
	info, err := p.root.Stat(file)
	if err != nil {
		return
	}

	target := p.target(file)
	mode := info.Mode().Perm()
	p.addMend(mendsMode, mendedPlace{file: file}, func() error {
		return os.Chmod(target, mode|mode&0o444>>2)
	}, "the file is now executable")
}

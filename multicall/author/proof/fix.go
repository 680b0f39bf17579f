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
	fixed   Finding // the finding that describes the change
	column  int     // the column of a key, or 0
	perform func() error
}

// step is a kind of mends. Fix makes all mends of one step before those of the next, since a mend can depend
// on earlier steps. For example, the names that a key declares are known only once the key is correct.
type step int

const (
	mendsKey step = iota
	mendsLines
	mendsName
	mendsMode
)

// maxRounds limits how many times Fix examines the charm. Fix examines it once for each step that has mends.
const maxRounds = 20

// Fix fixes the faults of a charm that have only one possible fix: misspelled keys and names of hooks with a single
// possible meaning, CRLF in scripts, and scripts that are not executable. It returns its changes in the order in
// which it made them, also with an error. After maxRounds it stops, and does not return an error.
func Fix(dir string, r Rules) (fixed []Finding, _ error) {
	for range maxRounds {
		_, mends, err := examine(dir, r)
		if err != nil {
			return fixed, err
		}
		if len(mends) == 0 {
			return fixed, nil
		}

		// Fix from the end of a file, since a change moves the text after it.
		slices.SortStableFunc(mends, func(a, b mend) int {
			return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.fixed.File, b.fixed.File),
				cmp.Compare(b.fixed.Line, a.fixed.Line), cmp.Compare(b.column, a.column))
		})

		// Later steps may need other mends once those of the first step are made. The next round finds out.
		firstStep := mends[0].step
		for _, m := range mends {
			if m.step != firstStep {
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

// mendKey adds a mend that corrects the dictionary's key, if the key can misspell only one known key. It adds
// none if the dictionary has another key that is, or misspells, the same known key. It also adds none if
// replaceKey cannot find the key in the file.
func (p *proofer) mendKey(file string, dictionary, key *yaml.Node, known []string) {
	meant := console.OnlySlip(key.Value, known)
	if meant == "" {
		return
	}

	candidates := 0 // including the key itself
	for other := range pairs(dictionary) {
		// OnlySlip returns nothing for a correct key that another known key resembles, such as base and bases.
		if other.Value == meant || console.OnlySlip(other.Value, known) == meant {
			candidates++
		}
	}
	if candidates > 1 {
		return
	}

	if _, isReplaced := replaceKey(p.read(file), key, meant); !isReplaced {
		return
	}

	target := p.target(file)
	p.addMend(mendsKey, mendedPlace{file, key.Line, key.Column}, func() error {
		data, err := os.ReadFile(target)
		if err != nil {
			return err
		}
		// If the file no longer has the key, replaceKey returns data unchanged.
		mended, _ := replaceKey(data, key, meant)
		return osutil.WriteFile(target, mended, 0o644)
	}, "key %q is now %q", key.Value, meant)
}

// replaceKey replaces the key at its line and column in data by the word, and keeps its quotes. It returns
// data unchanged and false if data does not have the key at that place, or writes it differently, such as
// with escapes.
func replaceKey(data []byte, key *yaml.Node, word string) (mended []byte, isReplaced bool) {
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
	afterKey, hasKey := strings.CutPrefix(after, quote+key.Value+quote)
	if !hasKey {
		return data, false
	}

	lines[key.Line-1] = []byte(before + quote + word + quote + afterKey)
	return bytes.Join(lines, nil), true
}

// mendLines adds a mend that replaces each CRLF in a script by LF. The argument data is the script's text.
func (p *proofer) mendLines(file string, data []byte) {
	target := p.target(file)
	p.addMend(mendsLines, mendedPlace{file: file}, func() error {
		return osutil.WriteFile(target, bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), 0o755)
	}, "the lines now end in LF only")
}

// mendName adds a mend that renames a file, if the file's name can misspell only one of the names. It adds
// none if another file in the directory has, or misspells, the same name. It never changes the relation or
// the storage in a hook's name.
func (p *proofer) mendName(file string, names []string) {
	folder, name := path.Split(file)
	// Among the hooks of relations and storages, only those with the same subject count.
	slipOf := func(name string) string { return console.OnlySlip(name, withSubject(name, names, isEqual)) }
	meant := slipOf(name)
	if meant == "" {
		return
	}

	// The directory exists, since it contains the file.
	entries, _ := os.ReadDir(filepath.Join(p.dir, folder))
	isRival := func(e os.DirEntry) bool {
		return e.Name() != name && (e.Name() == meant || slipOf(e.Name()) == meant)
	}
	if slices.ContainsFunc(entries, isRival) {
		return
	}

	p.addMend(mendsName, mendedPlace{file: file}, func() error {
		return os.Rename(filepath.Join(p.dir, file), filepath.Join(p.dir, folder, meant))
	}, "the file is now called %q", path.Join(folder, meant))
}

// mendMode adds a mend that makes a script executable for every user who can read it. It adds none if it cannot
// find the script.
func (p *proofer) mendMode(file string) {
	info, err := p.root.Stat(file)
	if err != nil {
		return
	}

	target := p.target(file)
	mode := info.Mode().Perm()
	// For each class of users, the execute bit is two places below the read bit.
	readBits := mode & 0o444
	executeBits := readBits >> 2
	p.addMend(mendsMode, mendedPlace{file: file}, func() error {
		return os.Chmod(target, mode|executeBits)
	}, "the file is now executable")
}

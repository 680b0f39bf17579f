package charm

import "testing"

func TestIgnoreRules(t *testing.T) {
	tests := []struct {
		name, rules string
		file        string // the name of a directory ends in "/"
		ignored     bool
	}{
		{"a name anywhere", "notes", "a/b/notes", true},
		{"a name is a whole one", "notes", "a/notes.txt", false},
		{"a star", "*.log", "a/b.log", true},
		{"a star stays in its directory", "/*.log", "a/b.log", false},
		{"a star at the beginning", "/*.log", "b.log", true},
		{"two stars", "/docs/**/x", "docs/a/b/x", true},
		{"two stars for nothing", "/docs/**/x", "docs/x", true},
		{"two stars at the end", "/docs/**", "docs/a/b", true},
		{"two stars at the beginning", "**/x", "a/x", true},
		{"a path anywhere", "a/b", "x/a/b", true},
		{"a path from the beginning", "/a/b", "x/a/b", false},
		{"a directory", "target/", "x/target/", true},
		{"a directory alone", "target/", "x/target", false},
		{"a question mark", "a?c", "abc", true},
		{"a question mark is no slash", "/a?c", "a/c", false},
		{"a class", "*.py[co]", "x.pyc", true},
		{"another class", "*.py[!co]", "x.pyc", false},
		{"a class and the others", "*.py[!co]", "x.pyx", true},
		{"alternatives", "*.{o,so}", "x.so", true},
		{"taken in again", "*.log\n!keep.log", "keep.log", false},
		{"left out in the end", "!keep.log\n*.log", "keep.log", true},
		{"a default taken in again", "!/build/", "build/", false},
		{"a comment", "# x", "# x", false},
		{"a quoted sign", "\\#x", "#x", true},
		{"a quoted exclamation mark", "\\!x", "!x", true},
		{"spaces behind", "x  ", "x", true},
		{"a quoted space behind", "x\\ ", "x ", true},
		{"spaces in front", "  x", "x", true},
		{"a line of Windows", "x\r\ny", "x", true},
		{"a point is one", "a.c", "abc", false},
		{"letters beyond ASCII", "\u00fc?", "\u00fc\u00e4", true},
		{"version control", "", "sub/.git/", true},
		{"tox", "", "sub/.tox/", true},
		{"build", "", "build/", true},
		{"a file build", "", "build", false},
		{"build elsewhere", "", "sub/build/", false},
		{"a backup", "", "a/save~", true},
		{"a swap file", "", "a/.x.swp", true},
		{"a lock", "", ".#x", true},
		{"an automatic backup", "", "#x#", true},
		{"one sign", "", "#", false},
		{"the rules themselves", "", ".jujuignore", true},
		{"the virtual environment stays", "venv\n*.so", "venv/x.so", false},
		{"without its version control", "", "venv/x/.git/", true},
		{"the revision stays", "revision", "revision", false},
		{"a revision elsewhere does not", "revision", "sub/revision", true},
		{"the version stays", "/version", "version", false},
		{"the metadata stays", "*.yaml", "metadata.yaml", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defaults, err := parseIgnoreRules(ignoredByDefault)
			must(t, err)
			own, err := parseIgnoreRules(tt.rules)
			must(t, err)
			file := tt.file
			isDir := file[len(file)-1] == '/'
			if isDir {
				file = file[:len(file)-1]
			}
			if got := (ignoreRules{defaults, own}).match(file, isDir); got != tt.ignored {
				t.Errorf("it is ignored: %t", got)
			}
		})
	}
}

func TestIgnoreRulesThatCannotBeRead(t *testing.T) {
	for rules, complaint := range map[string]string{
		"a\n[b":   `line 2: pattern "[b": a [ has no ]`,
		"{a":      `line 1: pattern "{a": a { has no }`,
		"x[z-a]y": "line 1: cannot parse pattern \"x[z-a]y\": error parsing regexp: invalid character class range: `z-a`",
	} {
		t.Run(rules, func(t *testing.T) {
			if _, err := parseIgnoreRules(rules); err == nil || err.Error() != complaint {
				t.Errorf("got %v, want %s", err, complaint)
			}
		})
	}
}

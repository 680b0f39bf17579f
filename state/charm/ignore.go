package charm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
)

// ignoreFile is where the author of a charm's directory says what is not packed.
const ignoreFile = ".jujuignore"

// formerlyIgnored is what no charm has had from the beginning: the directories of version
// control, and the backup and lock files of emacs and vim.
const formerlyIgnored = ".git\n.bzr\n.svn\n.hg\n*~\n.*.sw?\n.#*\n\\#*#\n"

// ignoredByDefault is what Juju leaves out, too. An author's rules come behind it, so that they
// can take it in again.
const ignoredByDefault = formerlyIgnored + ".tox\n/build/\n" + ignoreFile + "\n"

// ignoreRules say what of a directory is not packed; without rules all is.
type ignoreRules struct {
	defaults, own []ignoreRule
}

// ignoreRule is a line of .jujuignore.
type ignoreRule struct {
	pattern *regexp.Regexp
	ofBase  bool // the pattern is of a name's last part alone
	dirOnly bool
	keeps   bool // it takes in again what rules above it leave out
}

// readIgnoreRules reads the rules for a directory, which need not have any of its own.
func readIgnoreRules(root *os.Root) (ignoreRules, error) {
	defaults, err := parseIgnoreRules(ignoredByDefault)
	if err != nil {
		return ignoreRules{}, err
	}

	f, err := root.Open(ignoreFile)
	if errors.Is(err, fs.ErrNotExist) {
		return ignoreRules{defaults: defaults}, nil
	}
	if err != nil {
		return ignoreRules{}, err
	}
	defer f.Close()

	text, err := readBounded(f)
	if err != nil {
		return ignoreRules{}, fmt.Errorf("%s: %w", ignoreFile, err)
	}
	own, err := parseIgnoreRules(string(text))
	if err != nil {
		return ignoreRules{}, fmt.Errorf("%s: %w", ignoreFile, err)
	}

	return ignoreRules{defaults, own}, nil
}

// match reports whether the rules leave out a file or directory. All files below a directory that is left
// out are left out too.
func (r ignoreRules) match(name string, isDir bool) bool {
	ignored := false
	rules := r.defaults
	if !isNeeded(name) {
		rules = append(rules[:len(rules):len(rules)], r.own...)
	}

	base := path.Base(name)
	for _, rule := range rules {
		subject := name
		if rule.ofBase {
			subject = base
		}
		if (isDir || !rule.dirOnly) && rule.pattern.MatchString(subject) {
			ignored = !rule.keeps
		}
	}

	return ignored
}

// isNeeded reports whether an author's rules cannot leave the file out. They are written for
// charmcraft, which brings these files into a charm itself: bijou must take them as they are.
func isNeeded(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	switch first {
	case "venv":
		return true
	case revisionName, "version", "metadata.yaml", "charmcraft.yaml", "manifest.yaml", "config.yaml", "actions.yaml":
		return first == name
	}

	return false
}

// parseIgnoreRules reads lines like those of .gitignore, as Juju does: a pattern without a slash at
// its beginning stands for files of any directory, also one with slashes within.
func parseIgnoreRules(text string) ([]ignoreRule, error) {
	var rules []ignoreRule
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}

		var rule ignoreRule
		line, rule.keeps = strings.CutPrefix(line, "!")
		line, rule.dirOnly = strings.CutSuffix(trimSpacesBehind(line), "/")

		pattern, err := translateGlob(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		rule.pattern = pattern
		rule.ofBase = !strings.Contains(line, "/")
		rules = append(rules, rule)
	}

	return rules, nil
}

// trimSpacesBehind removes the spaces at the line's end, except one behind a backslash.
func trimSpacesBehind(line string) string {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	return line
}

// translateGlob makes a regular expression of a pattern with ?, *, **, [a-z], [!a-z], {a,b} and \.
func translateGlob(glob string) (*regexp.Regexp, error) {
	var expr strings.Builder
	expr.WriteString(`(?s)\A`)
	rest, isAnchored := strings.CutPrefix(glob, "/")
	if !isAnchored && strings.Contains(rest, "/") {
		expr.WriteString(`(?:.*/)?`)
	}

	openBraces := 0
	for rest != "" {
		length, part := translatePiece(rest, &openBraces)
		if length == 0 {
			return nil, fmt.Errorf("pattern %q: a [ has no ]", glob)
		}
		expr.WriteString(part)
		rest = rest[length:]
	}
	if openBraces > 0 {
		return nil, fmt.Errorf("pattern %q: a { has no }", glob)
	}

	pattern, err := regexp.Compile(expr.String() + `\z`)
	if err != nil {
		return nil, fmt.Errorf("pattern %q cannot be read: %w", glob, err)
	}

	return pattern, nil
}

// translatePiece returns the length of a glob's first piece, and the regular expression for it. The length
// is 0 if the glob begins with a [ that has no ].
func translatePiece(glob string, openBraces *int) (length int, expr string) {
	switch c := glob[0]; {
	case strings.HasPrefix(glob, "**/"):
		return 3, `(?:.*/)?`
	case strings.HasPrefix(glob, "**"):
		return 2, `.*`
	case c == '*':
		return 1, `[^/]*`
	case c == '?':
		return 1, `[^/]`
	case c == '[':
		class, _, isClosed := strings.Cut(glob[1:], "]")
		if !isClosed || class == "" {
			return 0, ""
		}
		return len(class) + 2, translateClass(class)
	case c == '{':
		*openBraces++
		return 1, `(?:`
	case c == '}' && *openBraces > 0:
		*openBraces--
		return 1, `)`
	case c == ',' && *openBraces > 0:
		return 1, `|`
	case c == '\\' && len(glob) > 1:
		return 2, regexp.QuoteMeta(glob[1:2])
	}

	return 1, regexp.QuoteMeta(glob[:1])
}

// translateClass returns the regular expression for the text between a pattern's brackets.
func translateClass(class string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(class, "!"), "^")
	not := ""
	if rest != class {
		not = `^/`
	}

	quoted := strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`, `&`, `\&`, `~`, `\~`).Replace(rest)
	return "[" + not + quoted + "]"
}

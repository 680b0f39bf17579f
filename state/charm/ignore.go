package charm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// ignoreFile is the file in which the author of a charm names the files that are not archived.
const ignoreFile = ".jujuignore"

// formerlyIgnored has the rules of the first versions of bijou: the directories of version control, and the
// backup and lock files of emacs and vim.
const formerlyIgnored = ".git\n.bzr\n.svn\n.hg\n*~\n.*.sw?\n.#*\n\\#*#\n"

// ignoredByDefault has the default rules, which are also Juju's. An author's rules come after them, so that
// they can include such files again.
const ignoredByDefault = formerlyIgnored + ".tox\n/build/\n" + ignoreFile + "\n"

// ignoreRules are the rules for the files of a directory that are not archived.
type ignoreRules struct {
	defaults, own []ignoreRule
}

// ignoreRule is a line of .jujuignore.
type ignoreRule struct {
	pattern *regexp.Regexp
	ofBase  bool // the pattern applies only to the last part of a name
	dirOnly bool // the rule applies only to directories
	keeps   bool // the rule includes files again that earlier rules leave out
}

// readIgnoreRules reads the rules for a directory. Without a .jujuignore it returns only the default rules.
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

// match reports whether the rules leave out a file or directory. The caller must also leave out all files
// below such a directory.
func (r ignoreRules) match(name string, isDir bool) bool {
	// The last matching rule decides, so the author's rules come after the defaults. They do not apply to files
	// that are needed. Clip makes append copy the defaults.
	rules := r.defaults
	if !isNeeded(name) {
		rules = append(slices.Clip(r.defaults), r.own...)
	}

	ignored := false
	base := path.Base(name)
	for _, rule := range rules {
		subject := name
		if rule.ofBase {
			subject = base
		}
		applies := isDir || !rule.dirOnly
		if applies && rule.pattern.MatchString(subject) {
			ignored = !rule.keeps
		}
	}

	return ignored
}

// isNeeded reports whether the file is archived even if the author's rules leave it out. Such rules are
// written for charmcraft, which generates these files, while bijou archives the existing files.
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

// parseIgnoreRules reads lines like those of .gitignore, as Juju does. Unlike in .gitignore, a pattern with
// slashes matches in any directory, unless it begins with a slash.
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

// trimSpacesBehind removes the spaces at the end of the line, except a space after a backslash.
func trimSpacesBehind(line string) string {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	return line
}

// translateGlob returns the regular expression for a pattern with ?, *, **, [a-z], [!a-z], {a,b} and \.
func translateGlob(glob string) (*regexp.Regexp, error) {
	var expr strings.Builder
	expr.WriteString(`(?s)\A`) // names can contain newlines

	// Without a slash at its beginning, a pattern with slashes matches in any directory.
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
		return nil, fmt.Errorf("cannot parse pattern %q: %w", glob, err)
	}

	return pattern, nil
}

// translatePiece returns the length of a glob's first piece, and the regular expression for it. It counts the
// open braces in openBraces. The length is 0 if the glob begins with a [ without a ], or with an empty class.
func translatePiece(glob string, openBraces *int) (length int, expr string) {
	c := glob[0]
	switch {
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
	negation := ""
	if rest != class {
		// A ! or ^ at the beginning negates the class. A negated class does not match a slash either.
		negation = `^/`
	}

	quoted := strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`, `&`, `\&`, `~`, `\~`).Replace(rest)
	return "[" + negation + quoted + "]"
}

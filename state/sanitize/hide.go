package sanitize

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// HideSecrets returns the text with Hidden in the place of passwords in URLs and DSNs,
// and of the values beside names of secrets: name=value, "name": "value",
// --name value, and a line that is no more than `name: value`.
func HideSecrets(text string) string {
	if strings.Contains(text, `\`) {
		text = patterns().quoted.ReplaceAllStringFunc(text, hideInLiteral)
	}
	if strings.ContainsRune(text, '@') {
		for _, form := range patterns().addresses {
			text = hideGroups(text, form)
		}
	}
	if !strings.ContainsAny(text, `=:"'`) && !strings.Contains(text, "--") {
		return text
	}
	var b strings.Builder
	done := 0 // of text
	for begin := 0; begin < len(text); {
		if !isNameByte(text[begin]) {
			begin++
			continue
		}
		end := begin
		for end < len(text) && isNameByte(text[end]) {
			end++
		}
		if form := secretPattern(text, begin, end); form != nil {
			if at := form.FindStringIndex(text[end:]); at != nil {
				b.WriteString(text[done:end] + hideGroups(text[end:end+at[1]], form))
				done = end + at[1]
				end = done
			}
		}
		begin = end
	}
	return b.String() + text[done:]
}

// hideInLiteral hides in a string literal's value: a setting may hold JSON.
func hideInLiteral(literal string) string {
	value, err := strconv.Unquote(literal)
	if err != nil || !strings.Contains(literal, `\`) {
		return literal
	}
	if hidden := HideSecrets(value); hidden != value {
		return strconv.Quote(hidden)
	}
	return literal
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("_-.", c) >= 0
}

// secretPattern returns the pattern for what follows the name at that place; nil if that is
// no secret's value.
func secretPattern(text string, begin, end int) *regexp.Regexp {
	for begin > 0 && (isNameByte(text[begin-1]) || strings.IndexByte("/:+", text[begin-1]) >= 0) {
		begin-- // "tls/private-key", db:password+1=x
	}
	form := patterns().patternAround(text, begin, end)
	name := text[begin:end]
	if form == nil || !IsSecret(name) && !(form == patterns().field && strings.EqualFold(name, "pwd")) {
		return nil
	}
	return form
}

func (f patternSet) patternAround(text string, begin, end int) *regexp.Regexp {
	var before, after byte
	if begin > 0 {
		before = text[begin-1]
	}
	if end < len(text) {
		after = text[end]
	}
	quoted := before == '"' || before == '\''
	switch {
	case quoted && after == before:
		return f.quotedName
	case quoted && after == '=':
		return f.quotedPair[before]
	case after == '=' && (before == '?' || before == '&'):
		return f.parameter
	case strings.HasSuffix(strings.TrimRight(text[max(0, begin-9):begin], " "), ";"):
		return f.field
	case after == '=':
		return f.assignment
	case after == ' ' && strings.HasPrefix(text[begin:end], "--"):
		return f.option
	case after == ':' && isLineStart(text[max(0, begin-99):begin]):
		return f.line
	}
	return nil
}

// isLineStart reports whether there is no more than an indentation before.
func isLineStart(before string) bool {
	return strings.Trim(before[strings.LastIndexByte(before, '\n')+1:], " \t-") == ""
}

// patternSet has the patterns for what follows a name. All groups are values.
type patternSet struct {
	quoted     *regexp.Regexp   // string literals
	addresses  []*regexp.Regexp // anywhere
	quotedName *regexp.Regexp
	quotedPair map[byte]*regexp.Regexp // by quote
	parameter  *regexp.Regexp
	field      *regexp.Regexp
	assignment *regexp.Regexp
	option     *regexp.Regexp
	line       *regexp.Regexp
}

// patterns are compiled when they are first wanted: most commands show no text of charms.
var patterns = sync.OnceValue(func() patternSet {
	const (
		double = `"(?:[^"\\\n]|\\.)*"`
		single = `'(?:[^'\\\n]|\\.)*'`
		was    = `(?:\.\.\. \(\d+ bytes\))?(?: \(was (` + double + `))?`
	)
	return patternSet{
		quoted: regexp.MustCompile(double),
		addresses: []*regexp.Regexp{
			regexp.MustCompile(`://[^\s:@/"']*:([^\s"'/]*|(?:\d{0,5}[^\s"'@,/\d]|\d{6})[^\s"'@,]*)@`),        // a URL
			regexp.MustCompile(`\b[\w.+-]+:([^\s"']+)@(?:tcp|tcp4|tcp6|udp|unix)?\(`),                        // user:password@tcp(host)/name
			regexp.MustCompile(`\b[\w.+-]+:([^\s"'@/]+)@(?:/|[\w.-]+/|(?:[\w.-]+|\[[\da-f:]+\]):\d{2,5}\b)`), // user:password@host:port
		},
		quotedName: regexp.MustCompile(`^["'](?:\s*[=:]\s*(` + double + `|` + single + `|\[[^\[\]]*\]|[\w.+/$-][^\s,}\]]*))?` + was),
		quotedPair: map[byte]*regexp.Regexp{
			'"':  regexp.MustCompile(`^=((?:[^"\\\n]|\\.)*)"`),
			'\'': regexp.MustCompile(`^=((?:[^'\\\n]|\\.)*)'`),
		},
		parameter:  regexp.MustCompile(`^=([^\s&"'#]*)`),
		field:      regexp.MustCompile(`^ *= *([^;"'\n]*)`),
		assignment: regexp.MustCompile(`^=(\$?` + single + `|` + double + `|\S+)` + was),
		option:     regexp.MustCompile(`^ +(` + double + `|` + single + `|[^\s-]\S*)`),
		line:       regexp.MustCompile(`^:[ \t]+(` + double + `|` + single + `|\S+)[ \t]*(?:\n|$)`),
	}
})

func hideGroups(text string, form *regexp.Regexp) string {
	var b strings.Builder
	done := 0
	for _, at := range form.FindAllStringSubmatchIndex(text, -1) {
		for i := 2; i < len(at); i += 2 {
			if at[i] < 0 || at[i] == at[i+1] {
				continue
			}
			b.WriteString(text[done:at[i]] + Hidden)
			done = at[i+1]
		}
	}
	return b.String() + text[done:]
}

// Hidden replaces a secret.
const Hidden = "(hidden)"

// IsSecret reports whether values of that name are secret, by the words of the name:
// "dbPassword", "API_KEY", "tls.private-key".
func IsSecret(name string) bool {
	all := splitWords(name)
	return slices.ContainsFunc(all, func(word string) bool {
		switch word {
		case "pw", "secret", "token", "apikey", "credential", "dsn", "auth", "cert", "privatekey":
			return true
		case "key":
			return !slices.Contains(all, "public") && !slices.Contains(all, "authorized")
		}
		return strings.HasPrefix(word, "pass") || strings.Contains(word, "password") // PGPASSWORD
	})
}

// splitWords splits a name at what is no letter, and where a capital begins a word. The
// words are in lower case, and in the singular.
func splitWords(name string) (all []string) {
	runes := []rune(name)
	begin := 0
	add := func(end int) {
		if end > begin {
			all = append(all, trimPlural(strings.ToLower(string(runes[begin:end]))))
		}
		begin = end
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			add(i)
			begin = i + 1
		case i > begin && unicode.IsUpper(r) &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			add(i)
		}
	}
	add(len(runes))
	return all
}

func trimPlural(word string) string {
	if strings.HasSuffix(word, "ss") {
		return word
	}
	return strings.TrimSuffix(word, "s")
}

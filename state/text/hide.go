package text

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// HideSecrets returns the text with secret values replaced by Hidden. It finds them by the names before
// them, in settings, options and headers: name=value, "name": "value", --name value, or `name: value` on a
// line of its own. It also hides passwords in URLs and DSNs, and private keys. It leaves sentences and
// names of errors as they are: `KeyError: 'x'` names no secret.
func HideSecrets(text string) string {
	if strings.Contains(text, `\`) {
		text = patterns().quoted().ReplaceAllStringFunc(text, hideInLiteral)
	}
	for _, m := range patterns().anywhere {
		if strings.Contains(text, m.mark) {
			text = hideGroups(text, m.pattern(), m.shows)
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

		if f := secretForm(text, begin, end); f != nil {
			if at := f.pattern().FindStringIndex(text[end:]); at != nil {
				b.WriteString(text[done:end] + hideGroups(text[end:end+at[1]], f.pattern(), f.shows))
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
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		strings.IndexByte("_-.", c) >= 0
}

// secretForm returns the form of the text after the name at text[begin:end], which shows where the value
// stands. It returns nil if that is no secret's value.
func secretForm(text string, begin, end int) *form {
	for begin > 0 && (isNameByte(text[begin-1]) || strings.IndexByte("/:+", text[begin-1]) >= 0) {
		begin-- // "tls/private-key", db:password+1=x
	}

	p := patterns()
	f := p.formAround(text, begin, end)
	name := text[begin:end]
	switch {
	case f == nil:
		return nil
	case f == p.field && strings.EqualFold(name, "pwd"):
		return f
	case !IsSecret(name):
		return nil
	case f == p.line && (isErrorName(name) || p.fileName().MatchString(name)):
		return nil
	}

	return f
}

// The most bytes before a name that are read to find its form.
const (
	nearLine   = 99 // for what stands before it in its line
	nearHeader = 20 // for an option such as --header
	nearField  = 9  // for a semicolon and spaces
)

// formAround returns the form in which the name at text[begin:end] stands, judged by the characters around
// it; nil if it stands in none.
func (p *patternSet) formAround(text string, begin, end int) *form {
	var before, after byte
	if begin > 0 {
		before = text[begin-1]
	}
	if end < len(text) {
		after = text[end]
	}

	quoted := before == '"' || before == '\''

	switch {
	case quoted && after == before && isInMapping(text[max(0, begin-nearLine):begin-1]):
		return p.quotedKey
	case quoted && after == before:
		return p.quotedName
	case quoted && after == '=':
		return p.quotedPair[before]
	case after == ':' && p.beforeHeader().MatchString(text[max(0, begin-nearHeader):begin]):
		return p.header
	case after == '=' && strings.IndexByte("?&#", before) >= 0:
		return p.parameter
	case strings.HasSuffix(strings.TrimRight(text[max(0, begin-nearField):begin], " "), ";"):
		return p.field
	case after == '=':
		return p.assignment
	case after == ' ' && strings.HasPrefix(text[begin:end], "--"):
		return p.option
	case (after == ':' || after == ' ' || after == '\t') && isLineStart(text[max(0, begin-nearLine):begin]):
		return p.line
	}

	return nil
}

// isLineStart reports whether the text before a name is only an indentation, or a mark that tools print
// before lines that they sent or received.
func isLineStart(before string) bool {
	return strings.Trim(before[strings.LastIndexByte(before, '\n')+1:], " \t-<>") == ""
}

// isInMapping reports whether a quoted name after that text is a mapping's key. In a sentence, such as
// `cannot read "db-password": permission denied`, it is not.
func isInMapping(before string) bool {
	before = strings.TrimRight(before, " \t")
	return isLineStart(before) || strings.HasSuffix(before, "{") || strings.HasSuffix(before, ",")
}

// form is a pattern of the text after a secret's name. All its groups are values.
type form struct {
	pattern func() *regexp.Regexp
	shows   func(value string) bool // whether a value is none, but a word of a sentence
}

// marked is a form that needs no name, in texts with the mark.
type marked struct {
	mark string
	*form
}

type patternSet struct {
	quoted       func() *regexp.Regexp // string literals
	fileName     func() *regexp.Regexp // where an error is, not a name
	beforeHeader func() *regexp.Regexp // the option for a header of HTTP
	anywhere     []marked

	quotedKey, quotedName, header, parameter, field, assignment, option, line *form

	quotedPair map[byte]*form // by quote
}

// compiled returns a function that compiles the pattern at its first call. Most texts have no secret, and
// each command logs.
func compiled(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// patterns are all forms, none of them compiled yet.
var patterns = sync.OnceValue(func() *patternSet {
	const (
		double = `"(?:[^"\\\n]|\\.)*"`
		single = `'(?:[^'\\\n]|\\.)*'`
		list   = `\[[^\[\]]*\]`
		word   = `[\w.+/$-][^\s,}\]]*`
		was    = `(?:\.\.\. \(\d+ bytes\))?(?: \(was (` + double + `))?`
	)

	of := func(pattern string, shows func(string) bool) *form { return &form{compiled(pattern), shows} }
	at := func(mark, pattern string) marked { return marked{mark, of(pattern, isEmpty)} }

	return &patternSet{
		quoted:       compiled(double),
		fileName:     compiled(`\.(?:c|go|h|java|js|pl|py|rb|rs|sh|ts)(?::\d+)*$|:\d+$`),
		beforeHeader: compiled(`(?:-H|--header)[ =]?["']?$`),
		anywhere: []marked{
			at("@", `://[^\s:@/"']*:([^\s"'/]*|(?:\d{0,5}[^\s"'@,/\d]|\d{6})[^\s"'@,]*)@`),        // a URL
			at("@", `\b[\w.+-]+:([^\s"']+)@(?:tcp|tcp4|tcp6|udp|unix)?\(`),                        // user:password@tcp(host)/name
			at("@", `\b[\w.+-]+:([^\s"'@/]+)@(?:/|[\w.-]+/|(?:[\w.-]+|\[[\da-f:]+\]):\d{2,5}\b)`), // user:password@host:port
			at("PRIVATE KEY", `-----BEGIN [A-Z\d ]*PRIVATE KEY(?: BLOCK)?-----((?s:.*?))(?:-----END|\z)`),
			{"uthorization", of(`\b[Aa]uthorization["']?: *["']?(?i:bearer|basic|token|negotiate) +([^\s"',]+)`, isOfAuthorization)},
			at("curl", `\bcurl\b[^\n]*? (?:-u|--user|-U|--proxy-user)[ =]["']?[^\s:"']*:([^\s"'@]+)(?:["'\s]|$)`),
			at("IDENTIFIED", `\bIDENTIFIED (?:WITH \S+ )?BY (`+single+`|`+double+`)`), // SQL
			at("PASSWORD", `\bPASSWORD (`+single+`)`),
		},
		quotedKey: of(`^["'](?:\s*[=:]\s*(`+double+`|`+single+`|`+list+`|`+word+`))?`+was, isNothing),
		quotedName: of(
			`^["'](?:\s*:\s*(`+double+`|`+single+`|`+list+`)|\s*=\s*(`+double+`|`+single+`|`+list+`|`+word+
				`))?`+was,
			isNothing,
		),
		quotedPair: map[byte]*form{
			'"':  of(`^=((?:[^"\\\n]|\\.)*)"`, isPlaceholder),
			'\'': of(`^=((?:[^'\\\n]|\\.)*)'`, isPlaceholder),
		},
		header:     of(`^:[ \t]*([^"'\n]*)`, isPlaceholder),
		parameter:  of(`^=([^\s&"'#]*)`, isPlaceholder),
		field:      of(`^ *= *([^;"'\n]*)`, isPlaceholder),
		assignment: of(`^=(\$?`+single+`|`+double+`|\S+)`+was, isPlaceholder),
		option:     of(`^ +(`+double+`|`+single+`|[^\s-]\S*)`, isSentence),
		line: of(`^(?::[ \t]+|[ \t]*=[ \t]*)(`+double+`|`+single+`|`+list+`|\S+)[ \t]*(?:\n|\r|$)`,
			isState),
	}
})

// hideGroups hides what the pattern's groups match, except values that shows accepts.
func hideGroups(text string, pattern *regexp.Regexp, shows func(value string) bool) string {
	var b strings.Builder
	done := 0
	for _, at := range pattern.FindAllStringSubmatchIndex(text, -1) {
		for i := 2; i < len(at); i += 2 {
			if at[i] < 0 || at[i] == at[i+1] || shows(text[at[i]:at[i+1]]) {
				continue
			}
			b.WriteString(text[done:at[i]] + Hidden)
			done = at[i+1]
		}
	}

	return b.String() + text[done:]
}

func isEmpty(value string) bool { return value == "" }

// isNothing reports whether a mapping's value is none.
func isNothing(value string) bool {
	return slices.Contains([]string{"null", "None", "true", "false", "True", "False"}, value)
}

// isPlaceholder reports whether a text stands for a value, in the help of a program.
func isPlaceholder(value string) bool {
	if strings.HasPrefix(value, "<") && strings.HasSuffix(value, ">") {
		return true
	}

	return slices.Contains(
		[]string{"VALUE", "value", "FILE", "PATH", "TEXT", "STRING", "PASSWORD", "SECRET", "TOKEN", "KEY", "...", "…"},
		strings.Trim(value, "[]"),
	)
}

// isState reports whether a word says how a secret is doing: `cert: expired`.
func isState(value string) bool {
	return isNothing(value) || slices.Contains(stateWords(), strings.ToLower(strings.TrimRight(value, ".,;:!")))
}

// isOfAuthorization reports whether a sentence goes on after the scheme: `Authorization: Bearer token missing`.
func isOfAuthorization(value string) bool {
	return isState(value) || slices.Contains(
		[]string{"auth", "authentication", "authorization", "header", "scheme", "token"},
		value,
	)
}

// isSentence reports whether a sentence goes on after an option: `--password is missing`.
func isSentence(value string) bool {
	return isState(value) || isPlaceholder(value) || slices.Contains(strings.Fields(`a an and are as at but by can cannot came does
		flag for from given had has have if in into is it may must needs nor of on option options or requires set should than that the
		then to together twice was were when where which will with without`), strings.TrimRight(value, ".,;:"))
}

func stateWords() []string {
	return strings.Fields(`absent changed corrupt corrupted created denied deleted disabled empty enabled error expired
		failed failure forbidden found generated ignored incorrect invalid locked malformed mismatch missing no none not null ok
		optional present ready refused rejected removed renewed required revoked rotated set stored succeeded successful unavailable unchanged
		unknown unset unsupported updated valid verified wrong yes`)
}

// Hidden replaces a secret.
const Hidden = "(hidden)"

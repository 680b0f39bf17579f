package text

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// HideSecrets returns the text with secret values replaced by Hidden. It finds secret values by the names
// before them, in settings, options and headers: name=value, "name": "value", --name value, or `name: value`
// on a separate line. It also hides passwords in URLs and DSNs, and private keys. It does not change
// sentences and names of errors, such as `KeyError: 'x'`.
func HideSecrets(text string) string {
	if strings.Contains(text, `\`) {
		text = patterns().quoted().ReplaceAllStringFunc(text, hideInLiteral)
	}
	for _, m := range patterns().anywhere {
		if strings.Contains(text, m.mark) {
			text = hideGroups(text, m.pattern(), m.shows)
		}
	}

	// This is a fast path for texts in which no form can match.
	if !strings.ContainsAny(text, `=:"'`) && !strings.Contains(text, "--") {
		return text
	}

	// Look at each name, and hide the value after it.
	var b strings.Builder
	done := 0 // how much of text is in b
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
				after := end + at[1]
				b.WriteString(text[done:end] + hideGroups(text[end:after], f.pattern(), f.shows))
				end = after
				done = after
			}
		}
		begin = end
	}

	return b.String() + text[done:]
}

// hideInLiteral hides secrets in the value of a string literal, since a setting can be JSON.
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

// secretForm returns the form of the text after the name at text[begin:end], which finds the secret's value.
// It returns nil if the name does not belong to a secret.
func secretForm(text string, begin, end int) *form {
	for begin > 0 && (isNameByte(text[begin-1]) || strings.IndexByte("/:+", text[begin-1]) >= 0) {
		begin-- // include the start of "tls/private-key" and db:password+1=x
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

// These limit how many bytes before a name are read to find its form.
const (
	nearLine   = 99 // the start of the name's line
	nearHeader = 20 // an option such as --header
	nearField  = 9  // a semicolon and spaces
)

// formAround returns the form of the name at text[begin:end], according to the characters around it. It
// returns nil if the name does not have a known form.
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

// isLineStart reports whether the text before a name has only indentation, or the marks that tools such as
// curl print before the lines that they have sent or received.
func isLineStart(before string) bool {
	return strings.Trim(before[strings.LastIndexByte(before, '\n')+1:], " \t-<>") == ""
}

// isInMapping reports whether a quoted name after the text is a mapping's key. A name in a sentence is not a
// key, as in `cannot read "db-password": permission denied`.
func isInMapping(before string) bool {
	before = strings.TrimRight(before, " \t")
	return isLineStart(before) || strings.HasSuffix(before, "{") || strings.HasSuffix(before, ",")
}

// form is a pattern of the text after a secret's name. All its groups match values.
type form struct {
	pattern func() *regexp.Regexp
	shows   func(value string) bool // whether a match is not a secret value, for example a word in a sentence
}

// marked is a form that does not need a name. Only texts that contain the mark are searched for it.
type marked struct {
	mark string
	*form
}

type patternSet struct {
	quoted       func() *regexp.Regexp // string literals
	fileName     func() *regexp.Regexp // file names and line numbers in errors, which are not names of values
	beforeHeader func() *regexp.Regexp // options for HTTP headers
	anywhere     []marked

	quotedKey, quotedName, header, parameter, field, assignment, option, line *form

	quotedPair map[byte]*form // by the quote
}

// compiled returns a function that compiles the pattern at its first call. Compiling all patterns would slow
// down each command that logs, and most texts have no secrets.
func compiled(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// patterns returns all forms. Their patterns are compiled when they are first used.
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

// hideGroups hides all matches of the pattern's groups, except values for which shows is true.
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

// isNothing reports whether a mapping's value is a null or a boolean.
func isNothing(value string) bool {
	return slices.Contains([]string{"null", "None", "true", "false", "True", "False"}, value)
}

// isPlaceholder reports whether a text only stands for a value, as in a program's help.
func isPlaceholder(value string) bool {
	if strings.HasPrefix(value, "<") && strings.HasSuffix(value, ">") {
		return true
	}

	return slices.Contains(
		[]string{"VALUE", "value", "FILE", "PATH", "TEXT", "STRING", "PASSWORD", "SECRET", "TOKEN", "KEY", "...", "…"},
		strings.Trim(value, "[]"),
	)
}

// isState reports whether a word is the state of a secret, as in `cert: expired`.
func isState(value string) bool {
	return isNothing(value) || slices.Contains(stateWords(), strings.ToLower(strings.TrimRight(value, ".,;:!")))
}

// isOfAuthorization reports whether a sentence follows the scheme, as in `Authorization: Bearer token
// missing`.
func isOfAuthorization(value string) bool {
	return isState(value) || slices.Contains(
		[]string{"auth", "authentication", "authorization", "header", "scheme", "token"},
		value,
	)
}

// isSentence reports whether a sentence follows an option, as in `--password is missing`.
func isSentence(value string) bool {
	return isState(value) || isPlaceholder(value) || slices.Contains(strings.Fields(`a an and are as at but by can cannot came does
		flag for from given had has have if in into is it may must needs nor of on option options or requires set should than that the
		then to together twice was were when where which will with without`), strings.TrimRight(value, ".,;:"))
}

// stateWords lists the words that isState accepts.
func stateWords() []string {
	return strings.Fields(`absent changed corrupt corrupted created denied deleted disabled empty enabled error expired
		failed failure forbidden found generated ignored incorrect invalid locked malformed mismatch missing no none not null ok
		optional present ready refused rejected removed renewed required revoked rotated set stored succeeded successful unavailable unchanged
		unknown unset unsupported updated valid verified wrong yes`)
}

// Hidden replaces a secret.
const Hidden = "(hidden)"

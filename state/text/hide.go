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
	// In a string literal with escapes, the secret's name and value are escaped too.
	if strings.Contains(text, `\`) {
		text = patterns().quoted().ReplaceAllStringFunc(text, hideInLiteral)
	}
	// Each of these patterns is tried only on texts with its mark, which is cheap to find.
	for _, m := range patterns().anywhere {
		if strings.Contains(text, m.mark) {
			text = hideGroups(text, m.pattern(), m.isHarmless)
		}
	}

	// If the text has none of these, no name in it has a value after it.
	if !strings.ContainsAny(text, `=:"'`) && !strings.Contains(text, "--") {
		return text
	}

	return hideAfterNames(text)
}

// hideAfterNames looks at each name in the text, and hides the value after it if the name belongs to a secret.
func hideAfterNames(text string) string {
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
			if match := f.pattern().FindStringIndex(text[end:]); match != nil {
				matchEnd := end + match[1]
				b.WriteString(text[done:end] + hideGroups(text[end:matchEnd], f.pattern(), f.isHarmless))
				// Continue after the value, which is not a name.
				end = matchEnd
				done = matchEnd
			}
		}
		begin = end
	}

	return b.String() + text[done:]
}

// hideInLiteral hides secrets in the value of a string literal with escapes, such as a setting that is JSON.
// It returns the literal unchanged if it has no escapes, if Go cannot unquote it, or if its value has no
// secrets.
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

// isNameByte reports whether a byte can be part of a name.
func isNameByte(c byte) bool {
	isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	isDigit := '0' <= c && c <= '9'
	return isLetter || isDigit || strings.IndexByte("_-.", c) >= 0
}

// secretForm returns how the value after a name is written, such as name=value: the pattern that finds the value.
// text[begin:end] is the end of the name, which can begin earlier. secretForm returns nil if the name does not belong
// to a secret, or is not written in a known form.
func secretForm(text string, begin, end int) *form {
	// The name can be a path, such as tls/private-key, or a key of several parts, such as db:password+1.
	start := begin
	for start > 0 && (isNameByte(text[start-1]) || strings.IndexByte("/:+", text[start-1]) >= 0) {
		start--
	}

	p := patterns()
	f := p.formAround(text, start, end)
	if f == nil {
		return nil
	}

	name := text[start:end]
	// In a field of a database's connection string, PWD is a password. Elsewhere PWD is a directory.
	isPassword := f == p.field && strings.EqualFold(name, "pwd")
	if !isPassword && !IsSecret(name) {
		return nil
	}

	// The text after the name of an error, or of a file, is a message.
	if f == p.line && (isErrorName(name) || p.fileName().MatchString(name)) {
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

// formAround returns the form of the name at text[begin:end], according to the characters around the name. It
// returns nil if the name does not have a known form.
func (p *patternSet) formAround(text string, begin, end int) *form {
	var before, after byte
	if begin > 0 {
		before = text[begin-1]
	}
	if end < len(text) {
		after = text[end]
	}

	startsQuote := before == '"' || before == '\''
	isQuoted := startsQuote && after == before
	hasSeparator := after == ':' || after == ' ' || after == '\t'
	switch {
	case isQuoted && isInMapping(text[max(0, begin-nearLine):begin-1]):
		return p.quotedKey // {"name": value}
	case isQuoted:
		return p.quotedName // a sentence with "name": "value"
	case startsQuote && after == '=':
		return p.quotedPair[before] // "name=value"
	case after == ':' && p.beforeHeader().MatchString(text[max(0, begin-nearHeader):begin]):
		return p.header // -H "name: value"
	case after == '=' && strings.IndexByte("?&#", before) >= 0:
		return p.parameter // ?name=value in a URL
	case strings.HasSuffix(strings.TrimRight(text[max(0, begin-nearField):begin], " "), ";"):
		return p.field // ; name = value
	case after == '=':
		return p.assignment // name=value
	case after == ' ' && strings.HasPrefix(text[begin:end], "--"):
		return p.option // --name value
	case hasSeparator && isLineStart(text[max(0, begin-nearLine):begin]):
		return p.line // name: value
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
	pattern    func() *regexp.Regexp
	isHarmless func(value string) bool // whether a matched value is not secret, for example a word in a sentence
}

// marked is a form that does not need a name. Only texts that contain the mark are searched for this form.
type marked struct {
	mark string
	*form
}

// patternSet has all forms, and the patterns that help to find them.
type patternSet struct {
	quoted       func() *regexp.Regexp // string literals
	fileName     func() *regexp.Regexp // file names and line numbers in errors, which are not names of values
	beforeHeader func() *regexp.Regexp // options for HTTP headers
	anywhere     []marked

	quotedKey, quotedName, header, parameter, field, assignment, option, line *form

	quotedPair map[byte]*form // by the quote
}

// compiled returns a function that returns the compiled pattern, which it compiles at its first call.
// Compiling all patterns at once would slow down each command that logs, although most texts have no secrets.
func compiled(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// patterns returns all forms. Their patterns are compiled when they are first used.
var patterns = sync.OnceValue(func() *patternSet {
	const (
		double = `"(?:[^"\\\n]|\\.)*"`                                   // a string in double quotes
		single = `'(?:[^'\\\n]|\\.)*'`                                   // a string in single quotes
		list   = `\[[^\[\]]*\]`                                          // a list in brackets
		word   = `[\w.+/$-][^\s,}\]]*`                                   // a value without quotes
		was    = `(?:\.\.\. \(\d+ bytes\))?(?: \(was (` + double + `))?` // the old value, after a value that was cut
	)

	newForm := func(pattern string, isHarmless func(string) bool) *form {
		return &form{compiled(pattern), isHarmless}
	}
	newMarked := func(mark, pattern string) marked { return marked{mark, newForm(pattern, isEmpty)} }

	return &patternSet{
		quoted:       compiled(double),
		fileName:     compiled(`\.(?:c|go|h|java|js|pl|py|rb|rs|sh|ts)(?::\d+)*$|:\d+$`),
		beforeHeader: compiled(`(?:-H|--header)[ =]?["']?$`),
		anywhere: []marked{
			newMarked("@", `://[^\s:@/"']*:([^\s"'/]*|(?:\d{0,5}[^\s"'@,/\d]|\d{6})[^\s"'@,]*)@`),        // a URL
			newMarked("@", `\b[\w.+-]+:([^\s"']+)@(?:tcp|tcp4|tcp6|udp|unix)?\(`),                        // user:password@tcp(host)/name
			newMarked("@", `\b[\w.+-]+:([^\s"'@/]+)@(?:/|[\w.-]+/|(?:[\w.-]+|\[[\da-f:]+\]):\d{2,5}\b)`), // user:password@host:port
			newMarked("PRIVATE KEY", `-----BEGIN [A-Z\d ]*PRIVATE KEY(?: BLOCK)?-----((?s:.*?))(?:-----END|\z)`),
			{"uthorization", newForm(`\b[Aa]uthorization["']?: *["']?(?i:bearer|basic|token|negotiate) +([^\s"',]+)`, isAfterScheme)},
			newMarked("curl", `\bcurl\b[^\n]*? (?:-u|--user|-U|--proxy-user)[ =]["']?[^\s:"']*:([^\s"'@]+)(?:["'\s]|$)`),
			newMarked("IDENTIFIED", `\bIDENTIFIED (?:WITH \S+ )?BY (`+single+`|`+double+`)`), // SQL
			newMarked("PASSWORD", `\bPASSWORD (`+single+`)`),
		},
		quotedKey: newForm(`^["'](?:\s*[=:]\s*(`+double+`|`+single+`|`+list+`|`+word+`))?`+was, isNullOrBool),
		quotedName: newForm(
			`^["'](?:\s*:\s*(`+double+`|`+single+`|`+list+`)|\s*=\s*(`+double+`|`+single+`|`+list+`|`+word+
				`))?`+was,
			isNullOrBool,
		),
		quotedPair: map[byte]*form{
			'"':  newForm(`^=((?:[^"\\\n]|\\.)*)"`, isPlaceholder),
			'\'': newForm(`^=((?:[^'\\\n]|\\.)*)'`, isPlaceholder),
		},
		header:     newForm(`^:[ \t]*([^"'\n]*)`, isPlaceholder),
		parameter:  newForm(`^=([^\s&"'#]*)`, isPlaceholder),
		field:      newForm(`^ *= *([^;"'\n]*)`, isPlaceholder),
		assignment: newForm(`^=(\$?`+single+`|`+double+`|\S+)`+was, isPlaceholder),
		option:     newForm(`^ +(`+double+`|`+single+`|[^\s-]\S*)`, isAfterOption),
		line: newForm(`^(?::[ \t]+|[ \t]*=[ \t]*)(`+double+`|`+single+`|`+list+`|\S+)[ \t]*(?:\n|\r|$)`,
			isState),
	}
})

// hideGroups hides the text that the pattern's groups match, except values for which isHarmless is true.
func hideGroups(text string, pattern *regexp.Regexp, isHarmless func(value string) bool) string {
	var b strings.Builder
	done := 0 // how much of text is in b
	for _, indices := range pattern.FindAllStringSubmatchIndex(text, -1) {
		// The first pair of indices is the whole match. Each further pair is a group.
		for i := 2; i < len(indices); i += 2 {
			begin := indices[i]
			end := indices[i+1]
			isUnmatched := begin < 0
			if isUnmatched || begin == end || isHarmless(text[begin:end]) {
				continue
			}
			b.WriteString(text[done:begin] + Hidden)
			done = end
		}
	}

	return b.String() + text[done:]
}

func isEmpty(value string) bool { return value == "" }

// isNullOrBool reports whether a mapping's value is null or a boolean.
func isNullOrBool(value string) bool {
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
	return isNullOrBool(value) || slices.Contains(stateWords(), strings.ToLower(strings.TrimRight(value, ".,;:!")))
}

// isAfterScheme reports whether the word after the scheme of an Authorization header belongs to a sentence,
// as in `Authorization: Bearer token missing`.
func isAfterScheme(value string) bool {
	return isState(value) || slices.Contains(
		[]string{"auth", "authentication", "authorization", "header", "scheme", "token"},
		value,
	)
}

// isAfterOption reports whether the word after an option belongs to a sentence, as in `--password is
// missing`, or only stands for a value.
func isAfterOption(value string) bool {
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

// Hidden is the text that replaces a secret.
const Hidden = "(hidden)"

package sanitize

import (
	"slices"
	"strings"
	"unicode"
)

// Hidden stands in the place of a secret.
const Hidden = "(hidden)"

// IsSecret reports whether values of that name are not for everybody's eyes, by the
// words of the name: "dbPassword", "API_KEY", "tls.private-key".
func IsSecret(name string) bool {
	all := words(name)
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

// words splits a name at what is no letter, and where a capital begins a word. They
// come in lower case, and in the singular.
func words(name string) (all []string) {
	runes := []rune(name)
	begin := 0
	add := func(end int) {
		if end > begin {
			all = append(all, singular(strings.ToLower(string(runes[begin:end]))))
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

func singular(word string) string {
	if strings.HasSuffix(word, "ss") {
		return word
	}
	return strings.TrimSuffix(word, "s")
}

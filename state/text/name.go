package text

import (
	"slices"
	"strings"
	"unicode"
)

// IsSecret reports whether the values of a name are secret, according to the words in the name: "dbPassword",
// "API_KEY", "tls.private-key". It is false for names of errors, such as "KeyError".
func IsSecret(name string) bool {
	words := splitWords(name)
	if len(words) == 0 {
		return false
	}

	switch words[len(words)-1] {
	case "error", "exception", "failure", "fault", "warning":
		return false
	case "authorization":
		return true
	case "pwd":
		// MYSQL_PWD is a password. PWD without more words is a shell's directory.
		return len(words) > 1
	}

	return slices.ContainsFunc(words, func(word string) bool {
		switch word {
		case "pw", "secret", "token", "apikey", "credential", "dsn", "auth", "cert", "privatekey", "secretkey", "accesskey":
			return true
		case "key":
			return !slices.Contains(words, "public") && !slices.Contains(words, "authorized")
		}

		return strings.HasPrefix(word, "pass") || strings.Contains(word, "password") || // PGPASSWORD
			strings.HasSuffix(word, "token") // authtoken
	})
}

// isErrorName reports whether a name before a colon is the name of an error. Such a name need not end in
// Error: TokenExpired, psycopg2.errors.InvalidPassword, SecretNotFound.
func isErrorName(name string) bool {
	return slices.ContainsFunc(splitWords(name), func(word string) bool {
		return slices.Contains([]string{"error", "exception", "bad", "denied", "expired", "failed", "found", "incorrect", "invalid", "mismatch", "missing",
			"rejected", "required", "unknown", "unsupported", "wrong"}, word)
	})
}

// splitWords splits a name into words. It splits at characters that are not letters, and before capitals that
// begin a word, as in apiKey and APIKey. It returns the words in lower case and in the singular.
func splitWords(name string) (words []string) {
	runes := []rune(name)
	begin := 0
	endWord := func(end int) {
		if end > begin {
			words = append(words, trimPlural(strings.ToLower(string(runes[begin:end]))))
		}
		begin = end
	}

	for i, r := range runes {
		if !unicode.IsLetter(r) {
			endWord(i)
			begin = i + 1
			continue
		}

		if i == begin || !unicode.IsUpper(r) {
			continue
		}
		isAfterLower := unicode.IsLower(runes[i-1])
		isBeforeLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if isAfterLower || isBeforeLower {
			endWord(i)
		}
	}

	endWord(len(runes))
	return words
}

// trimPlural removes the final s of a plural.
func trimPlural(word string) string {
	if strings.HasSuffix(word, "ss") {
		return word
	}
	return strings.TrimSuffix(word, "s")
}

package client

import "os"

func clientID(argv []string) string {
	if id := findOption(argv, "--client-id", "--client_id"); id != "" {
		return id
	}
	return os.Getenv("JUJU_CLIENT_ID")
}

// The last one wins, as with any option, and "--" ends options.
func findOption(argv []string, name, other string) string {
	found := ""
	for i := 1; i < len(argv) && argv[i] != "--"; i++ {
		key, value, joined := cutByte(argv[i], '=')
		if key != name && key != other {
			continue
		}
		if !joined && i+1 < len(argv) {
			i++
			value = argv[i]
		}
		found = value
	}
	return found
}

func cutByte(s string, at byte) (first, rest string, found bool) {
	for i := range len(s) {
		if s[i] == at {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

func baseName(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

// No argument can hold a NUL byte.
func joinArgs(argv []string) string {
	size := 0
	for _, arg := range argv {
		size += len(arg) + 1
	}
	joined := make([]byte, 0, size)
	for i, arg := range argv {
		if i > 0 {
			joined = append(joined, 0)
		}
		joined = append(joined, arg...)
	}
	return string(joined)
}

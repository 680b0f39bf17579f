package record

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The environments of a data centre.
const (
	EnvProduction = "production"
	EnvStaging    = "staging"
	EnvNone       = "none"
)

// checkEnvironment accepts prod as production's short name.
func checkEnvironment(value string) (string, error) {
	if value == "prod" {
		return EnvProduction, nil
	}
	if !slices.Contains([]string{EnvProduction, EnvStaging, EnvNone}, value) {
		return "", fmt.Errorf("an environment is %s, %s or %s", EnvProduction, EnvStaging, EnvNone)
	}
	return value, nil
}

// The values of repair: what is done about something that is not as the last update left
// it.
const (
	RepairAsk  = "ask"
	RepairAuto = "auto"
)

func oneOf(values ...string) func(string) (string, error) {
	return func(value string) (string, error) {
		if !slices.Contains(values, value) {
			return "", fmt.Errorf("it is %s", strings.Join(values, " or "))
		}
		return value, nil
	}
}

func durationAtLeast(least time.Duration) func(string) (string, error) {
	return func(value string) (string, error) {
		d, err := time.ParseDuration(value)
		if err != nil {
			return "", errors.New(`a duration is a number with a unit, as in "90m" or "1h30m"`)
		}
		if d < least {
			return "", fmt.Errorf("it is at least %s", least)
		}
		return value, nil
	}
}

func checkRepository(value string) (string, error) {
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+$`).MatchString(value) {
		return "", errors.New("a repository is OWNER/NAME")
	}
	return value, nil
}

// checkWord accepts printable ASCII without blanks.
func checkWord(value string) (string, error) {
	if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("it holds a blank or a character that is not printable ASCII")
	}
	return value, nil
}

func urlWithScheme(schemes ...string) func(string) (string, error) {
	return func(value string) (string, error) {
		u, err := url.Parse(value)
		if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
			return "", fmt.Errorf("a URL here begins with %s:// and names a host", strings.Join(schemes, ":// or "))
		}
		return value, nil
	}
}

func checkTagPrefix(value string) (string, error) {
	if strings.Contains(value, "-") {
		return "", errors.New("a tag's prefix ends before its first hyphen, so none is in it")
	}
	return checkWord(value)
}

// checkPublicKey accepts the line that minisign shows: base64 of 2 bytes of algorithm
// ("Ed"), 8 of key id and 32 of Ed25519 key.
func checkPublicKey(value string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(raw) != 42 || string(raw[:2]) != "Ed" {
		return "", errors.New("it is no minisign public key (56 characters that begin with RW)")
	}
	return value, nil
}

func checkWindow(value string) (string, error) {
	_, err := ParseWindow(value)
	return value, err
}

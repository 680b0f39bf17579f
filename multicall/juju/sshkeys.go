package juju

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
)

type sshKeysCmd struct {
	Full       bool `help:"Print the keys themselves."`
	outputFlag `embed:""`
}

// Run lists the keys that operators have added.
func (c sshKeysCmd) Run(o *operator) error {
	env, err := readChosen(o, (*state.View).Environment)
	if err != nil {
		return err
	}

	keys := sshKeys(env)
	if len(keys) == 0 {
		o.note("no keys were added; juju ssh does not need any")
	}
	for _, line := range keys {
		key, err := parseSSHKey(line)
		switch {
		case c.Full || err != nil:
			// A line that cannot be parsed is also shown as it is.
			fmt.Fprintln(o.streams.Out, line)
		default:
			fmt.Fprintf(o.streams.Out, "%s (%s)\n", key.fingerprint(), key.comment)
		}
	}

	return nil
}

// sshKeys returns the keys that operators have added to the environment, one for each line of the setting.
func sshKeys(e state.Environment) []string {
	return strings.FieldsFunc(e.Config[state.AuthorizedKeys], func(r rune) bool { return r == '\n' })
}

// joinSSHKeys returns the keys as the value of the environment's setting, with each key on its own line.
// Without keys it returns nil, the default.
func joinSSHKeys(keys []string) *string {
	if len(keys) == 0 {
		return nil
	}
	joined := strings.Join(keys, "\n")
	return &joined
}

// sshKey is a public key, as in a line of authorized_keys.
type sshKey struct {
	blob    []byte
	comment string
}

// parseSSHKey parses a line TYPE BASE64 [COMMENT].
func parseSSHKey(line string) (sshKey, error) {
	words := strings.Fields(line)
	if len(words) > 1 && !strings.Contains(line, "\n") {
		blob, err := base64.StdEncoding.DecodeString(words[1])
		// The blob of a key also contains its type.
		if err == nil && strings.Contains(string(blob), words[0]) {
			return sshKey{blob, strings.Join(words[2:], " ")}, nil
		}
	}

	return sshKey{}, console.Hint(console.Usage(fmt.Errorf("cannot parse SSH key %.40q: want TYPE BASE64 [COMMENT]", line)),
		`juju add-ssh-key "$(cat ~/.ssh/id_ed25519.pub)"`)
}

// fingerprint returns the fingerprint as ssh-keygen prints it.
func (k sshKey) fingerprint() string {
	sum := sha256.Sum256(k.blob)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// sameSSHKey reports whether two lines have the same key, whatever their comments are. If one of the lines cannot be
// parsed, it reports whether the lines are equal.
func sameSSHKey(a, b string) bool {
	first, errFirst := parseSSHKey(a)
	second, errSecond := parseSSHKey(b)
	if errFirst != nil || errSecond != nil {
		return a == b
	}
	return string(first.blob) == string(second.blob)
}

package juju

import (
	"strings"
	"testing"

	"bijou/multicall/console"
)

// TestReadPlacesLocalCopy checks that the refusal to copy a file of this host to this host says that no remote
// file is given only if this is so.
func TestReadPlacesLocalCopy(t *testing.T) {
	const noRemote = "no remote file given"
	for words, want := range map[string]string{
		"a ./dir":           noRemote,
		"a b ./dir":         noRemote,
		"web/0:a b ./dir":   `cannot copy "b" to "./dir": both are on this host`,
		"b web/0:a ./dir":   `cannot copy "b" to "./dir": both are on this host`,
		"web/0:a db/0:b .":  "from two machines",
		"web/0:a b db/0:c":  "from one machine to another",
		"b web/0:a c ./dir": `cannot copy "b" to "./dir"`,
	} {
		o := &operator{streams: console.Streams{Out: t.Output(), Err: t.Output()}}
		_, _, err := scpCmd{}.readPlaces(o, strings.Fields(words))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", words, err, want)
		}
	}
}

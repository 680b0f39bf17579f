package author

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"bijou/multicall/console"
)

// missing are commands of charmcraft that charm has not.
type missing struct {
	commands string // separated by spaces
	why      string // one clause
	instead  string // a hint, with NAME and DIR for what the user gave
}

const publishesNothing = "it publishes nothing, and a charm is deployed from its directory"

func missingCommands() []missing {
	return []missing{
		{"init new", "a charm begins by another name", "charm create NAME --lang python"},
		{"pack build remote-build try", "nothing is built: a charm is deployed from its directory", "juju deploy DIR"},
		{"clean pull stage prime", "nothing is built, so that no step of a build is there", "charm proof DIR"},
		{"lint analyse analyze", "what is wrong with a charm is found by another name", "charm proof DIR"},
		{"extensions list-extensions expand-extensions", "charmcraft's extensions are for Kubernetes", "charm create NAME --lang python"},
		{"fetch-lib fetch-libs create-lib publish-lib list-lib", "libraries are files below lib/ of the charm, and nothing fetches them",
			"calls of hook tools in them are checked by: charm proof DIR"},
		{"status revisions names list-revisions", publishesNothing, "what the store has: juju info NAME"},
		{"resources resource-revisions", publishesNothing, "what the store has: juju charm-resources NAME"},
		{"upload upload-resource release promote promote-bundle close register register-bundle unregister login logout whoami create-track " +
			"set-resource-architectures", publishesNothing, "juju deploy DIR"},
		{"version --version", "it is part of bijou", "bijou version"},
	}
}

// refuseMissing returns an error that tells users of charmcraft which command of charm to use instead.
func refuseMissing(args []string) error {
	for _, m := range missingCommands() {
		if !slices.Contains(strings.Fields(m.commands), args[0]) {
			continue
		}

		err := console.Usage(fmt.Errorf("charm has no command %q: %s", args[0], m.why))
		return console.Hint(err, m.advise(args[1:]))
	}

	return nil
}

// advise fills the name and the directory that the user gave into the hint. It leaves out any that a shell
// would not read as one word.
func (m missing) advise(words []string) string {
	name, dir := "", ""
	for i := 0; i < len(words); i++ {
		option, value, joined := strings.Cut(words[i], "=")
		isOption := strings.HasPrefix(option, "-")
		if isOption && !joined && i+1 < len(words) {
			i++
			value = words[i]
		}

		switch {
		case !plainWord().MatchString(cmp.Or(value, words[i])):
			// A shell would not read it as one word.
		case option == "--name":
			name = value
		case option == "-p", option == "--project-dir":
			dir = value
		case !isOption && dir == "":
			dir = words[i]
		}
	}

	name = cmp.Or(name, strings.TrimSuffix(filepath.Base(cmp.Or(dir, "NAME")), ".charm"))
	switch {
	case dir == "", strings.HasSuffix(dir, ".charm"), strings.HasPrefix(dir, "charms."):
		dir = "."
	case !strings.HasPrefix(dir, "/") && !strings.HasPrefix(dir, "."):
		dir = "./" + dir
	}

	return strings.NewReplacer("NAME", name, "DIR", dir).Replace(m.instead)
}

var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w./-]+$`) })

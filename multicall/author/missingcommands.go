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
		{commands: "init new", why: "a charm begins by another name", instead: "charm create NAME --lang python"},
		{commands: "pack build remote-build try", why: "nothing is built: a charm is deployed from its directory", instead: "juju deploy DIR"},
		{commands: "clean pull stage prime", why: "nothing is built, so that no step of a build is there", instead: "charm proof DIR"},
		{commands: "lint analyse analyze", why: "what is wrong with a charm is found by another name", instead: "charm proof DIR"},
		{commands: "extensions list-extensions expand-extensions", why: "charmcraft's extensions are for Kubernetes", instead: "charm create NAME --lang python"},
		{commands: "fetch-lib fetch-libs create-lib publish-lib list-lib", why: "libraries are files below lib/ of the charm, and nothing fetches them",
			instead: "calls of hook tools in them are checked by: charm proof DIR"},
		{commands: "status revisions names list-revisions", why: publishesNothing, instead: "what the store has: juju info NAME"},
		{commands: "resources resource-revisions", why: publishesNothing, instead: "what the store has: juju charm-resources NAME"},
		{commands: "upload upload-resource release promote promote-bundle close register register-bundle unregister login logout whoami create-track " +
			"set-resource-architectures", why: publishesNothing, instead: "juju deploy DIR"},
		{commands: "version --version", why: "it is part of bijou", instead: "bijou version"},
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
	name := ""
	dir := ""
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

package author

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"bijou/multicall/console"
)

// missing describes commands of charmcraft that charm does not have.
type missing struct {
	commands string // separated by spaces
	why      string // one clause
	instead  string // a hint, with NAME and DIR as placeholders for the user's words
}

// publishesNothing is the reason why charm does not have the commands that use the store.
const publishesNothing = "bijou does not publish charms, and deploys them from their directories"

// missingCommands returns the commands of charmcraft that charm does not have.
func missingCommands() []missing {
	return []missing{
		{commands: "init new", why: "the command has a different name here", instead: "charm create NAME --lang python"},
		{commands: "pack build remote-build try", why: "charms are not built, and are deployed from their directories", instead: "juju deploy DIR"},
		{commands: "clean pull stage prime", why: "charms are not built, so there are no build steps", instead: "charm proof DIR"},
		{commands: "lint analyse analyze", why: "the command has a different name here", instead: "charm proof DIR"},
		{commands: "extensions list-extensions expand-extensions", why: "charmcraft's extensions are for Kubernetes", instead: "charm create NAME --lang python"},
		{commands: "fetch-lib fetch-libs create-lib publish-lib list-lib", why: "libraries are files in the lib/ directory of the charm, and bijou does not fetch them",
			instead: "to check their calls of hook tools: charm proof DIR"},
		{commands: "status revisions names list-revisions", why: publishesNothing, instead: "to see what the store has: juju info NAME"},
		{commands: "resources resource-revisions", why: publishesNothing, instead: "to see what the store has: juju charm-resources NAME"},
		{commands: "upload upload-resource release promote promote-bundle close register register-bundle unregister login logout whoami create-track " +
			"set-resource-architectures", why: publishesNothing, instead: "juju deploy DIR"},
		{commands: "version --version", why: "charm is part of bijou, and has its version", instead: "bijou version"},
	}
}

// refuseMissing returns an error if the first of args is a command of charmcraft that charm does not have.
// The error tells users of charmcraft which command to use instead. args must not be empty.
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

// advise returns the hint with the name and the directory in words, the user's words after the command. Without a name,
// it uses the name of the directory. Without a directory, it uses the current one, and the placeholder NAME stays if
// there is no name either.
func (m missing) advise(words []string) string {
	name, dir := givenNameAndDir(words)
	if name == "" {
		name = charmName(dir)
	}

	return strings.NewReplacer("NAME", name, "DIR", charmDir(dir)).Replace(m.instead)
}

// givenNameAndDir returns the values of --name and --project-dir, or "" if they are not given. Without
// --project-dir, dir is the first word that is neither an option nor the value of one. It ignores values and words
// with characters that can be special in a shell.
func givenNameAndDir(words []string) (name, dir string) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		if !strings.HasPrefix(word, "-") {
			if dir == "" && plainWord().MatchString(word) {
				dir = word
			}
			continue
		}

		// The options of charmcraft are not known here, so the word after any option counts as its value.
		option, value, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(words) {
			i++
			value = words[i]
		}
		if !plainWord().MatchString(value) {
			continue
		}

		switch option {
		case "--name":
			name = value
		case "-p", "--project-dir":
			dir = value
		}
	}

	return name, dir
}

// charmName returns the name of the charm in the directory, or the placeholder NAME if dir is empty.
func charmName(dir string) string {
	if dir == "" {
		return "NAME"
	}
	return strings.TrimSuffix(filepath.Base(dir), ".charm")
}

// charmDir returns the directory as an argument of juju and charm. It returns the current directory if dir is empty,
// or looks like a packed charm or a library.
func charmDir(dir string) string {
	switch {
	case dir == "":
		return "."
	case strings.HasSuffix(dir, ".charm"), strings.HasPrefix(dir, "charms."):
		// A packed charm or a library (charms.NAME.v0.LIB) is not a directory that charm can use.
		return "."
	case strings.HasPrefix(dir, "/"), strings.HasPrefix(dir, "."):
		return dir
	}

	// Without ./, juju deploy would take the name for that of a charm in the store.
	return "./" + dir
}

// plainWord matches words without characters that can be special in a shell.
var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w./-]+$`) })

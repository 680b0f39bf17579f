package juju

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"bijou/multicall/home"
)

// queriedStatus matches the status in a query of juju wait-for, such as status=="active" or
// workload-status=='blocked'.
var queriedStatus = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`status\s*==\s*["']?([a-z]+)`)
})

// waitForHint returns the `juju wait` command that corresponds to a `juju wait-for` with these words. If
// `juju wait` cannot express the query, the command waits for the state active. For a model or a machine, the
// command ignores the query, and waits for the whole model.
func waitForHint(words []string, names givenNames) string {
	w := readWaitFor(words)

	command := []string{"juju"}
	model := names.model
	// juju wait waits for a whole model if it gets no name.
	if w.kind == "model" {
		model = cmp.Or(w.name, model)
		w.name = ""
	}
	if model != "" {
		command = append(command, "-m", model)
	}

	command = append(command, "wait")
	// juju wait does not wait for machines.
	if w.name != "" && w.kind != "machine" {
		command = append(command, w.name, "--for", waitedStatus(w.query))
	}
	if w.timeout != "" {
		command = append(command, "--timeout", w.timeout)
	}
	return quoteShellWords(command)
}

// waitFor is a command line of juju wait-for. Fields are empty if the command line does not have them.
type waitFor struct {
	kind    string // application, unit, model or machine
	name    string
	query   string
	timeout string
}

// readWaitFor parses the words after juju wait-for.
func readWaitFor(words []string) (w waitFor) {
	for i := 0; i < len(words); i++ {
		option, value, joined := strings.Cut(words[i], "=")
		// Of the options of juju wait-for, only --summary takes no value.
		takesNext := strings.HasPrefix(option, "-") && option != "--summary" && !joined
		if takesNext && i+1 < len(words) {
			i++
			value = words[i]
		}

		switch {
		case option == "--query":
			w.query = value
		case option == "--timeout":
			w.timeout = value
		case strings.HasPrefix(option, "-"):
			// juju wait has no such option.
		case w.kind == "" && slices.Contains([]string{"application", "unit", "model", "machine"}, option):
			w.kind = option
		case w.name == "":
			w.name = words[i]
		}
	}

	return w
}

// waitedStatus returns the state of juju wait that corresponds to a query, or active if there is no such
// state. A query with alternatives (||) corresponds to none.
func waitedStatus(query string) string {
	found := queriedStatus().FindStringSubmatch(query)
	isOneOf := strings.Contains(query, "||")
	if found != nil && !isOneOf && slices.Contains(waitStates(), found[1]) {
		return found[1]
	}
	return untilActive
}

// destroyControllerHint returns the command that destroys the model with the controller's name. If there is
// no such model, the hint lists the existing models. destroyControllerHint returns "" if there are no models, or
// if they cannot be listed.
func destroyControllerHint(_ []string, names givenNames) string {
	h, err := home.Find()
	if err != nil {
		return ""
	}

	// The controller's name is among the apps. After an error, models is empty.
	models, _ := h.Names()
	if len(names.apps) > 0 && slices.Contains(models, names.apps[0]) {
		return "juju destroy-model " + quoteShellWords(names.apps[:1])
	}
	if len(models) == 0 {
		return ""
	}
	return "juju destroy-model MODEL; " + listHint("models", models)
}

// createSecretHint returns the juju command for kubectl's create secret generic NAME --from-literal=K=V. A name or
// pair that is missing becomes a placeholder. If a key is too short for juju, createSecretHint makes it longer,
// and the hint begins with the reason.
func createSecretHint(words []string, _ givenNames) string {
	name := ""
	var pairs []string
	for i, word := range words {
		literal, isLiteral := strings.CutPrefix(word, "--from-literal=")
		switch {
		case isLiteral:
			pairs = append(pairs, literal)
		case word == "--from-literal" && i+1 < len(words):
			pairs = append(pairs, words[i+1])
		case strings.HasPrefix(word, "-"), strings.Contains(word, "="):
			// This word is a different option, or the value of --from-literal.
		case i == 0 && slices.Contains([]string{"generic", "tls", "docker-registry"}, word):
			// This word is the kind of the secret.
		case name == "":
			name = word
		}
	}

	// A key of juju's secrets must have at least three letters or digits. kubectl accepts shorter keys. If a key
	// is invalid in a different way, juju add-secret says so.
	lead := ""
	for i, pair := range pairs {
		if key, _, _ := strings.Cut(pair, "="); len(key)-strings.Count(key, "-") < 3 {
			pairs[i] = "key-" + pair
			lead = "a key has three characters or more: "
		}
	}
	if len(pairs) == 0 {
		pairs = []string{"KEY=VALUE"}
	}
	return lead + "juju add-secret " + quoteShellWords(append([]string{cmp.Or(name, "NAME")}, pairs...))
}

// waitsForCondition reports whether the words after wait are arguments of kubectl's wait, such as
// --for=condition=ready pod/web.
func waitsForCondition(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		// The condition can also be the word after --for.
		word = strings.TrimPrefix(word, "--for=")
		kind, _, hasName := strings.Cut(word, "/")
		return strings.HasPrefix(word, "condition=") ||
			strings.HasPrefix(word, "jsonpath=") ||
			word == "delete" ||
			hasName && isKind(kind)
	})
}

// conditionHint returns the juju command for kubectl's wait. With --for=delete, the command waits until units are
// gone. With any other condition, it waits until they are active.
func conditionHint(words []string, _ givenNames) string {
	until := untilActive
	timeout := ""
	var others []string // words that can be names, without the values of the two options
	for i := 0; i < len(words); i++ {
		option, value, joined := strings.Cut(words[i], "=")
		if (option == "--for" || option == "--timeout") && !joined && i+1 < len(words) {
			i++
			value = words[i]
		}

		switch {
		case option == "--for" && value == "delete":
			until = untilGone
		case option == "--timeout":
			timeout = " --timeout " + quoteShellWords([]string{value})
		case option != "--for":
			others = append(others, words[i])
		}
	}

	named := readNames(others)
	names := append(named.apps, named.units...)
	hint := "juju wait"
	if len(names) > 0 {
		hint += " " + quoteShellWords(names)
	}
	return hint + " --for " + until + timeout
}

// resetsNothing reports whether --reset is the last word, so that no option's name follows it.
func resetsNothing(words []string) bool { return len(words) > 0 && words[len(words)-1] == "--reset" }

// resetHint returns the juju command for config APP OPTION... --reset, with the options' names after --reset.
// It returns "" if no option is named.
func resetHint(_ []string, names givenNames) string {
	// apps also contains the names of the options, after the application's name.
	if len(names.apps) < 2 {
		return ""
	}
	command := []string{"juju", "config", names.apps[0], "--reset", strings.Join(names.apps[1:], ",")}
	return quoteShellWords(command)
}

// setEnvHint returns the juju command for kubectl's set env deployment/web K=V. Without a pair K=V, the command
// has a placeholder. setEnvHint returns "" if no application is named.
func setEnvHint(words []string, names givenNames) string {
	if len(names.apps) == 0 {
		return ""
	}

	var pairs []string
	for _, word := range words {
		if variable().MatchString(word) { // NAME=VALUE
			pairs = append(pairs, word)
		}
	}
	if len(pairs) == 0 {
		pairs = []string{"OPTION=VALUE"}
	}
	return quoteShellWords(append([]string{"juju", "config", names.apps[0]}, pairs...))
}

// namesImage reports whether the words after run are arguments of kubectl's run NAME --image=IMAGE. It
// ignores the command after two dashes.
func namesImage(words []string) bool {
	for _, word := range words {
		switch {
		case word == "--":
			return false
		case word == "--image" || strings.HasPrefix(word, "--image="):
			return true
		}
	}
	return false
}

// runImageHint returns a hint with the juju command that runs the command of kubectl's run on all existing
// units. It returns "" if there is no command after two dashes.
func runImageHint(words []string, _ givenNames) string {
	i := slices.Index(words, "--")
	if i < 0 || i+1 == len(words) {
		return ""
	}
	return "to run on all units: juju exec --all -- " + quoteShellWords(words[i+1:])
}

// createNamespaceHint returns the juju command for kubectl's create namespace NAME, or "" if there is no name.
func createNamespaceHint(_ []string, names givenNames) string {
	if len(names.apps) == 0 {
		return ""
	}
	return "juju add-model " + quoteShellWords(names.apps[:1])
}

// deleteNamespaceHint returns the juju command for kubectl's delete namespace NAME, or "" if there is no name.
func deleteNamespaceHint(_ []string, names givenNames) string {
	if len(names.apps) == 0 {
		return ""
	}
	return "juju destroy-model " + quoteShellWords(names.apps[:1])
}

// switchHint returns the juju command for kubectl's use-context NAME and set-context --namespace=NAME, or ""
// if there is no name.
func switchHint(words []string, names givenNames) string {
	if model := namespaceGiven(words); model != "" {
		return "juju switch " + quoteShellWords([]string{model})
	}
	// apps can also contain the name of a context.
	if len(names.apps) > 0 {
		return "juju switch " + quoteShellWords(names.apps[:1])
	}
	return ""
}

// namespaceGiven returns the value of kubectl's first -n or --namespace, or "" if there is none.
func namespaceGiven(words []string) string {
	for i, word := range words {
		option, value, joined := strings.Cut(word, "=")
		if option != "-n" && option != "--namespace" {
			continue
		}

		if joined {
			return value
		}
		if i+1 < len(words) {
			return words[i+1]
		}
	}

	return ""
}

// upHint returns the juju command for compose's up --scale web=3, or "" without --scale.
func upHint(words []string, _ givenNames) string {
	for i, word := range words {
		scale, hasScale := strings.CutPrefix(word, "--scale=")
		if word == "--scale" && i+1 < len(words) {
			scale = words[i+1]
			hasScale = true
		}
		if hasScale {
			return "to change the number of units: juju scale " + quoteShellWords([]string{scale})
		}
	}

	return ""
}

// attachHint returns the juju command that follows the log of the pod's unit, for attach POD. It returns "" for any
// other name. The hints of [missing].instead are then used. Juju cannot attach to an application, so a name such
// as web-0 is the name of a pod.
func attachHint(_ []string, names givenNames) string {
	if len(names.apps) == 0 {
		return ""
	}
	unit := unitOfPod(names.apps[0])
	if !isUnitWord(unit) {
		return ""
	}
	return "juju debug-log --follow --include " + unit
}

// namesKind reports whether the first word after set env or set image is a kind or KIND/NAME, as in kubectl's
// set image deployment/web. In juju set APP KEY=VALUE, an application can be named env or image, but the word
// after it has the form KEY=VALUE.
func namesKind(words []string) bool {
	if len(words) == 0 {
		return false
	}
	kind, _, _ := strings.Cut(words[0], "/")
	return isKind(kind)
}

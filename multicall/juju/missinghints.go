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

// waitForHint returns the `juju wait` command that corresponds to a `juju wait-for`. If `juju wait` cannot
// express the query, the command waits for the state active.
func waitForHint(words []string, names givenNames) string {
	kind := ""
	name := ""
	query := ""
	timeout := ""
	for i := 0; i < len(words); i++ {
		option, value, joined := strings.Cut(words[i], "=")
		if strings.HasPrefix(option, "-") && !joined && i+1 < len(words) && option != "--summary" {
			i++
			value = words[i]
		}

		switch {
		case option == "--query":
			query = value
		case option == "--timeout":
			timeout = value
		case strings.HasPrefix(option, "-"):
		case kind == "" && slices.Contains([]string{"application", "unit", "model", "machine"}, option):
			kind = option
		case name == "":
			name = words[i]
		}
	}

	command := []string{"juju"}
	model := names.model
	if kind == "model" {
		model = cmp.Or(name, model)
		name = ""
	}
	if model != "" {
		command = append(command, "-m", model)
	}

	command = append(command, "wait")
	if name != "" && kind != "machine" {
		command = append(command, name, "--for", waitedStatus(query))
	}
	if timeout != "" {
		command = append(command, "--timeout", timeout)
	}
	return quoteShellWords(command)
}

// waitedStatus returns the state of juju wait that corresponds to a query, or active if there is no such
// state.
func waitedStatus(query string) string {
	found := queriedStatus().FindStringSubmatch(query)
	isOneOf := strings.Contains(query, "||")
	if found != nil && !isOneOf && slices.Contains(waitStates(), found[1]) {
		return found[1]
	}
	return untilActive
}

// destroyControllerHint returns the command that destroys the model with the controller's name. If there is
// no such model, it lists the existing models. It returns "" if there are no models.
func destroyControllerHint(words []string, names givenNames) string {
	h, err := home.Find()
	if err != nil {
		return ""
	}

	models, _ := h.Names()
	if len(names.apps) > 0 && slices.Contains(models, names.apps[0]) {
		return "juju destroy-model " + quoteShellWords(names.apps[:1])
	}
	if len(models) == 0 {
		return ""
	}
	return "juju destroy-model MODEL; " + listHint("models", models)
}

// createSecretHint returns the juju command for kubectl's create secret generic NAME --from-literal=K=V.
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
		case i == 0 && slices.Contains([]string{"generic", "tls", "docker-registry"}, word):
		case name == "":
			name = word
		}
	}

	lead := ""
	for i, pair := range pairs {
		if key, _, _ := strings.Cut(pair, "="); len(key) < 3 {
			pairs[i] = "key-" + pair
			lead = "a key has three characters or more: "
		}
	}
	if len(pairs) == 0 {
		pairs = []string{"KEY=VALUE"}
	}
	return lead + "juju add-secret " + quoteShellWords(append([]string{cmp.Or(name, "NAME")}, pairs...))
}

// waitsForCondition reports whether the words belong to kubectl's wait, such as --for=condition=ready
// pod/web.
func waitsForCondition(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		word = strings.TrimPrefix(word, "--for=")
		kind, _, ofKind := strings.Cut(word, "/")
		return strings.HasPrefix(word, "condition=") ||
			strings.HasPrefix(word, "jsonpath=") ||
			word == "delete" ||
			ofKind && isKind(kind)
	})
}

// conditionHint returns the juju command for kubectl's wait.
func conditionHint(words []string, _ givenNames) string {
	state := untilActive
	timeout := ""
	var others []string
	for i := 0; i < len(words); i++ {
		option, value, joined := strings.Cut(words[i], "=")
		if (option == "--for" || option == "--timeout") && !joined && i+1 < len(words) {
			i++
			value = words[i]
		}

		switch {
		case option == "--for" && value == "delete":
			state = untilGone
		case option == "--timeout":
			timeout = " --timeout " + quoteShellWords([]string{value})
		case option != "--for":
			others = append(others, words[i])
		}
	}

	names := readNames(others)
	all := append(names.apps, names.units...)
	hint := "juju wait"
	if len(all) > 0 {
		hint += " " + quoteShellWords(all)
	}
	return hint + " --for " + state + timeout
}

// resetsNothing reports whether --reset is the last word, so that no option's name follows it.
func resetsNothing(words []string) bool { return len(words) > 0 && words[len(words)-1] == "--reset" }

// resetHint returns the juju command with the options' names after --reset.
func resetHint(words []string, names givenNames) string {
	if len(names.apps) < 2 {
		return ""
	}
	command := []string{"juju", "config", names.apps[0], "--reset", strings.Join(names.apps[1:], ",")}
	return quoteShellWords(command)
}

// setEnvHint returns the juju command for kubectl's set env deployment/web K=V.
func setEnvHint(words []string, names givenNames) string {
	if len(names.apps) == 0 {
		return ""
	}

	command := []string{"juju", "config", names.apps[0]}
	for _, word := range words {
		if variable().MatchString(word) {
			command = append(command, word)
		}
	}
	if len(command) == 3 {
		command = append(command, "OPTION=VALUE")
	}
	return quoteShellWords(command)
}

// namesImage reports whether the words are those of kubectl's run NAME --image=IMAGE. It ignores the command
// after two dashes.
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

// runImageHint returns the juju command that runs the command of kubectl's run on the existing units.
func runImageHint(words []string, _ givenNames) string {
	i := slices.Index(words, "--")
	if i < 0 || i+1 == len(words) {
		return ""
	}
	return "to run on all units: juju exec --all -- " + quoteShellWords(words[i+1:])
}

// createNamespaceHint returns the juju command for kubectl's create namespace NAME.
func createNamespaceHint(_ []string, names givenNames) string {
	if len(names.apps) == 0 {
		return ""
	}
	return "juju add-model " + quoteShellWords(names.apps[:1])
}

// deleteNamespaceHint returns the juju command for kubectl's delete namespace NAME.
func deleteNamespaceHint(_ []string, names givenNames) string {
	if len(names.apps) == 0 {
		return ""
	}
	return "juju destroy-model " + quoteShellWords(names.apps[:1])
}

// switchHint returns the juju command for kubectl's use-context NAME and set-context --namespace=NAME.
func switchHint(words []string, names givenNames) string {
	if model := namespaceGiven(words); model != "" {
		return "juju switch " + quoteShellWords([]string{model})
	}
	if len(names.apps) > 0 {
		return "juju switch " + quoteShellWords(names.apps[:1])
	}
	return ""
}

// namespaceGiven returns the value of kubectl's -n or --namespace, or "".
func namespaceGiven(words []string) string {
	for i, word := range words {
		option, value, joined := strings.Cut(word, "=")
		switch {
		case option != "-n" && option != "--namespace":
		case joined:
			return value
		case i+1 < len(words):
			return words[i+1]
		}
	}

	return ""
}

// upHint returns the juju command for compose's up --scale web=3.
func upHint(words []string, _ givenNames) string {
	for i, word := range words {
		scale, joined := strings.CutPrefix(word, "--scale=")
		if word == "--scale" && i+1 < len(words) {
			scale = words[i+1]
			joined = true
		}
		if joined {
			return "to change the number of units: juju scale " + quoteShellWords([]string{scale})
		}
	}

	return ""
}

// attachHint returns the juju command for attach POD. It returns "" for any other name, so that the table's general
// hints apply. No application can be attached to in Juju, so a name such as web-0 is a pod's.
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

// ofKindOrPath reports whether the words belong to kubectl's set, such as image deployment/web. The words of
// juju set do not have this form.
func ofKindOrPath(words []string) bool {
	if len(words) == 0 {
		return false
	}
	kind, _, _ := strings.Cut(words[0], "/")
	return isKind(kind)
}

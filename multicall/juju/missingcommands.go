package juju

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"bijou/multicall/console"
	"bijou/multicall/home"
)

// missing is a group of commands of Juju or another tool that bijou does not have.
type missing struct {
	// commands are the commands, separated by spaces. A command of two words, such as kubectl's rollout
	// restart, is written as rollout:restart.
	commands string
	why      string // the reason why bijou does not have the commands, as a clause
	// instead are hints, with placeholders for names that the user may have given: APP, UNIT, MACHINE, FILE,
	// MODEL, NUMBER and SECRET. The form of a word decides which placeholders it can fill: numbers fill
	// MACHINE and NUMBER, and words without a slash or dot fill APP and SECRET. The first hint with
	// placeholders that can all be filled is shown. If there is no such hint, the last hint is shown if it
	// has no placeholders. Otherwise all hints are shown.
	instead []string
	// onlyFor restricts a row for a command that bijou also has. The row then applies only to calls with names
	// after the command, or only to calls without names.
	onlyFor callKind
	// matches restricts a row for a command that bijou also has. The row then applies only if matches returns
	// true for the words after the command. If matches is nil, the row applies to all words.
	matches func(words []string) bool
	// errorLead is the beginning of the error if matches is not nil. If errorLead is empty, the error begins
	// with "juju COMMAND does not work like kubectl COMMAND".
	errorLead string
	// customHint returns a hint for the words after the command. If customHint is nil or returns "", the hints
	// in the field instead are used.
	customHint func(words []string, names givenNames) string
}

// callKind says to which calls of a command a row applies.
type callKind int

const (
	anyCall callKind = iota
	callsWithNames
	bareCalls // calls without names
)

// These are reasons that several rows share.

const (
	noUsers       = "there are no users or controllers, and the owner of the directory BIJOU_HOME can do everything"
	noClouds      = "a model's provider creates its machines, so there are no clouds or regions"
	noCredentials = "a model has at most one credential, which trusted applications can read"
	noContainers  = "a charm installs its own software, so there are no container images"
	neverActs     = "other tools' commands cannot remove or restart anything here"
)

// missingCommands returns a row for each group of commands of Juju and other tools that bijou lacks, with the
// reason and the commands to type instead. It also returns rows for uses of bijou's own commands that bijou
// does not support, such as juju stop with a name. If several rows have a command and match its words, the first
// one counts. [findMissing] looks for a command of two words before one of a single word.
func missingCommands() []missing {
	return []missing{
		// These are commands of Juju, and uses of bijou's own commands that bijou does not support.
		{commands: "offer offers find-offers show-offer remove-offer consume remove-saas", why: "applications cannot be offered to other models",
			instead: []string{"deploy both applications in one model, then: juju integrate A B"}},
		{commands: "suspend-relation resume-relation", why: "relations cannot be suspended",
			instead: []string{"to end a relation: juju remove-relation NUMBER; to add it again: juju integrate A B", "to end a relation: juju remove-relation A B"}},
		{commands: "spaces add-space show-space remove-space rename-space move-to-space reload-spaces subnets bind", why: "bijou has no network spaces, and all machines can reach each other",
			instead: []string{"see addresses with: juju show-machine MACHINE", "see addresses with: juju machines"}},
		{commands: "clouds add-cloud show-cloud update-cloud remove-cloud regions add-k8s remove-k8s update-k8s update-public-clouds default-region set-default-region", why: noClouds,
			instead: []string{"for a model on this host: juju bootstrap local; for a model of containers: juju bootstrap nspawn"}},
		{commands: "auth controllers show-controller register unregister login logout whoami users add-user show-user remove-user enable-user disable-user change-user-password", why: noUsers,
			instead: []string{"juju models"}},
		{commands: "destroy-controller kill-controller", why: "there are no controllers, and each model is destroyed separately",
			instead: []string{"juju models"}, customHint: destroyControllerHint},
		{commands: "grant revoke grant-cloud revoke-cloud", why: noUsers,
			instead: []string{"to grant a secret to an application: juju grant-secret --help"}},
		{commands: "enable-ha", why: "the store of a model decides how available the model's state is",
			instead: []string{"a three-member etcd survives the loss of any one member: juju migrate-state etcd://HOST:2379,HOST:2379,HOST:2379/bijou/NAME"}},
		{commands: "controller-config", why: "there are no controllers, and each model has its own settings",
			instead: []string{"juju model-config"}},
		{commands: "enable-destroy-controller disable-command enable-command disabled-commands", why: "commands cannot be disabled",
			instead: []string{"removals ask first on a terminal; to see what a removal would do: juju remove-application NAME --dry-run"}},
		{commands: "import-ssh-key", why: "bijou does not fetch keys from GitHub or Launchpad",
			instead: []string{"give the key itself: juju add-ssh-key KEY"}},
		{commands: "search", why: "juju find searches the store",
			instead: []string{"juju find --help"}},
		{commands: "storage-pools create-storage-pool update-storage-pool remove-storage-pool", why: "the only pools are rootfs, tmpfs and host:/DIRECTORY",
			instead: []string{"choose a pool with: juju deploy FILE --storage NAME=POOL", "choose a pool with: juju deploy CHARM --storage NAME=POOL"}},
		{commands: "application-storage", why: "storage is chosen when a unit is deployed, or with juju add-storage",
			instead: []string{"give a unit more storage with: juju add-storage UNIT NAME=POOL,SIZE", "give a unit more storage with: juju add-storage APP/0 NAME=POOL,SIZE"}},
		{commands: "import-filesystem", why: "existing data cannot be imported as storage, but new storage can be below a directory of the host",
			instead: []string{"juju deploy CHARM --storage NAME=host:/DIRECTORY"}},
		{commands: "wait-for", why: "juju wait waits for states, not for queries",
			instead: []string{"juju wait UNIT --for active", "juju wait APP --for active", "juju wait"}, customHint: waitForHint},
		{commands: "config get", why: "--reset needs the name of an option", matches: resetsNothing, errorLead: "cannot reset options",
			instead: []string{"juju config APP --reset OPTION"}, customHint: resetHint},
		{commands: "backups list-backups download-backup", why: "a backup is a file, and bijou keeps no list of backups",
			instead: []string{"juju backup FILE"}},
		{commands: "restore-backup", why: "juju restore creates a model from a backup file",
			instead: []string{"juju restore FILE"}},
		{commands: "migrate", why: "there is no controller to migrate a model to",
			instead: []string{"to move a model's state to a different store: juju migrate-state URL"}},
		{commands: "credentials show-credential show-credentials add-credential autoload-credentials update-credential update-credentials remove-credential default-credential set-default-credential set-default-credentials", why: noCredentials,
			instead: []string{"juju set-credential CLOUD CREDENTIAL --file credentials.yaml"}},
		{commands: "secret-backends add-secret-backend show-secret-backend update-secret-backend remove-secret-backend model-secret-backend", why: "secrets are always stored in the model's state",
			instead: []string{"juju secrets"}},
		{commands: "firewall-rules set-firewall-rule", why: "bijou does not change firewalls",
			instead: []string{"to mark an application as reachable from outside: juju expose --help"}},
		{commands: "payloads", why: "payloads are not supported",
			instead: []string{"juju show-unit UNIT", "juju status"}},
		{commands: "set-meter-status metrics collect-metrics", why: "bijou does not meter usage",
			instead: []string{"juju show-unit UNIT", "juju status"}},
		{commands: "agree agreements budget plans set-plan sla wallets create-wallet set-wallet show-wallet", why: "bijou has no plans, budgets or agreements",
			instead: []string{"juju status"}},
		{commands: "cached-images remove-cached-images", why: noContainers,
			instead: []string{"juju machines"}},
		{commands: "set-application-base set-series upgrade-series upgrade-machine", why: "the base of an application and its machines cannot change",
			instead: []string{"deploy a second application with: juju deploy CHARM NAME --base BASE"}},
		{commands: "sync-agent-binary sync-agent-binaries sync-tools", why: "an upgrade of a model copies the bijou binary",
			instead: []string{"juju upgrade-model"}},
		{commands: "dump-model dump-db", why: "a model can be exported as a bundle, or backed up with all of its state",
			instead: []string{"juju export-bundle"}},
		{commands: "debug", why: "bijou does not start debug containers",
			instead: []string{"juju ssh UNIT", "run the hooks by hand: juju debug-hooks UNIT"}},
		{commands: "describe", why: "juju status describes everything in a model",
			instead: []string{"juju status"}},
		{commands: "debug-code", why: "bijou cannot set breakpoints in a charm's code",
			instead: []string{"run the hooks by hand: juju debug-hooks UNIT"}},
		{commands: "gui upgrade-gui upgrade-dashboard", why: "the dashboard is part of the binary",
			instead: []string{"juju dashboard"}},
		{commands: "completion", why: "one completion script covers all of bijou's commands",
			instead: []string{"source <(bijou completion bash)"}},

		// These are commands of compose, docker, kubectl and systemd. Rows with the reason neverActs are for commands that
		// remove or restart something.
		{commands: "wait", why: "juju wait waits for states of units, not for conditions", matches: waitsForCondition,
			instead: []string{"juju wait APP --for active"}, customHint: conditionHint},
		{commands: "set:env", why: "charms have options, not environment variables", matches: namesKind,
			instead: []string{"juju config APP OPTION=VALUE"}, customHint: setEnvHint},
		{commands: "run", why: "a charm installs its own software, so there are no images", matches: namesImage,
			instead: []string{"juju deploy CHARM"}, customHint: runImageHint},
		{commands: "create:namespace create:ns", why: "bijou has models instead of namespaces and contexts",
			instead: []string{"juju add-model NAME"}, customHint: createNamespaceHint},
		{commands: "create:configmap create:cm", why: "options belong to an application",
			instead: []string{"juju config APPLICATION OPTION=VALUE"}},
		{commands: "create:deployment create:deploy", why: "an application is deployed from a charm",
			instead: []string{"juju deploy CHARM"}},
		{commands: "use-context use-namespace set-context", why: "bijou has models instead of namespaces and contexts",
			instead: []string{"juju switch NAME"}, customHint: switchHint},
		{commands: "set:image", why: "a charm installs its own software, so there are no images", matches: namesKind,
			instead: []string{"upgrade the charm with: juju refresh APP"}},
		{commands: "create:secret", why: "secrets have their own command",
			instead: []string{"juju add-secret NAME KEY=VALUE"}, customHint: createSecretHint},
		{commands: "down", why: neverActs,
			instead: []string{"juju destroy-model MODEL"}},
		{commands: "kill", why: neverActs + ", and a charm stops its own programs",
			instead: []string{"to remove a unit: juju remove-unit UNIT...", "to remove an application: juju remove-application APP...", "to remove a machine: juju remove-machine MACHINE..."}},
		{commands: "storage", why: "juju storage always lists the storage of all units", onlyFor: callsWithNames,
			instead: []string{"juju show-storage UNIT", "juju show-storage APP"}},
		{commands: "service:ls service:ps service stack stack:ls", why: "juju status lists applications and their units",
			instead: []string{"juju status"}},
		{commands: "node:ls node", why: "nodes are called machines here",
			instead: []string{"juju machines"}},
		{commands: "delete:secret delete:secrets", why: neverActs,
			instead: []string{"juju remove-secret SECRET"}},
		{commands: "delete:pvc delete:pv", why: neverActs,
			instead: []string{"juju storage"}},
		{commands: "delete:namespace delete:ns", why: neverActs,
			instead: []string{"juju destroy-model MODEL"}, customHint: deleteNamespaceHint},
		{commands: "rm delete", why: neverActs,
			instead: []string{"juju remove-unit UNIT...", "juju remove-application APP...", "juju remove-machine MACHINE..."}},
		{commands: "stop", why: "it stops a model's background process, and a charm stops its own programs", onlyFor: callsWithNames,
			instead: []string{"to remove a unit: juju remove-unit UNIT...", "to remove an application: juju remove-application APP..."}},
		{commands: "start", why: "it starts a model's background process, and a charm starts its own programs", onlyFor: callsWithNames,
			instead: []string{"to retry a failed hook: juju resolved --retry UNIT", "to see the units of an application: juju status APP"}},
		{commands: "restart reload", why: neverActs + ", and a charm restarts its own programs",
			instead: []string{"after a failure: juju resolved --retry UNIT", "after a failure: juju resolved --retry APP/0"}},
		{commands: "up apply create", why: "a bundle is the only file that can describe a whole model",
			instead: []string{"juju deploy FILE", "to create a model: juju bootstrap; to create an application: juju deploy CHARM"}, customHint: upHint},
		{commands: "pull", why: noContainers,
			instead: []string{"upgrade the charm with: juju refresh APP"}},
		{commands: "images image push commit save load import", why: noContainers,
			instead: []string{"see applications and their charms with: juju status"}},
		{commands: "build", why: noContainers,
			instead: []string{"deploy a charm from its directory with: juju deploy FILE", "deploy a charm from its directory with: juju deploy ./CHARM"}},
		{commands: "rollout:restart", why: neverActs + ", and a charm restarts its own programs",
			instead: []string{"after a failure: juju resolved --retry UNIT", "after a failure: juju resolved --retry APP/0"}},
		{commands: "rollout:undo", why: neverActs,
			instead: []string{"go back to the previous charm: juju rollback APP"}},
		{commands: "rollout rollout:status rollout:history rollout:pause rollout:resume", why: "units upgrade to a new charm automatically",
			instead: []string{"to see the progress of an upgrade: juju status APP", "to see the progress of an upgrade: juju status"}},
		{commands: "config get", why: "options belong to an application", onlyFor: bareCalls,
			instead: []string{"juju config APP; for the whole model: juju export-bundle"}},
		{commands: "top stats", why: "bijou does not measure CPU or memory",
			instead: []string{"run top on the machine with: juju ssh UNIT top -b -n 1", "run top on the machine with: juju exec --application APP -- top -b -n 1", "run top on the machine with: juju exec --all -- top -b -n 1"}},
		{commands: "watch", why: "juju status can watch for changes",
			instead: []string{"juju status --watch APP", "juju status --watch UNIT", "juju status --watch"}},
		{commands: "events", why: "bijou keeps a history of hooks, and a log",
			instead: []string{"juju hook-history UNIT", "juju debug-log --include 'APP/*'", "juju debug-log"}},
		{commands: "diff", why: "only a bundle can be compared with a model",
			instead: []string{"juju diff-bundle FILE"}},
		{commands: "explain api-resources", why: "kubectl's resource types do not exist here",
			instead: []string{"to see a unit's state and the reason for it: juju show-unit UNIT", "juju documentation"}},
		{commands: "port-forward proxy", why: "a unit's ports are open on its machine's address",
			instead: []string{"juju show-unit UNIT", "to see ports and addresses: juju status APP", "to see ports and addresses: juju status"}},
		{commands: "port ports", why: "juju status shows each unit's ports",
			instead: []string{"juju status UNIT", "juju status APP", "juju status"}},
		{commands: "label annotate", why: "labels and annotations are not supported",
			instead: []string{"juju show-application APP", "juju status"}},
		{commands: "cordon uncordon drain taint", why: "machines cannot be drained or tainted, but --to chooses a unit's machine",
			instead: []string{"to see the units on a machine: juju show-machine MACHINE", "to see all machines: juju machines"}},
		{commands: "attach", why: "a unit has no console",
			instead:    []string{"juju debug-log --follow --include UNIT", "juju debug-log --follow --include 'APP/*'", "juju debug-log --follow"},
			customHint: attachHint},
		{commands: "pause unpause", why: "running units cannot be paused",
			instead: []string{"to stop a running hook: juju interrupt UNIT", "to stop a model's background process: juju stop; to start it again: juju start"}},
		{commands: "edit patch replace", why: "objects cannot be edited in an editor",
			instead: []string{"juju config APP OPTION=VALUE"}},
		{commands: "autoscale", why: "bijou does not scale applications automatically",
			instead: []string{"juju scale APP=N"}},
		{commands: "volume volumes", why: "volumes are called storage here",
			instead: []string{"juju storage"}},
		{commands: "network networks", why: "there are no networks to choose, and all machines can reach each other",
			instead: []string{"juju machines"}},
		{commands: "units apps applications services pods nodes containers", why: "juju status lists applications and their units",
			instead: []string{"juju status APP", "juju status"}},
		{commands: "cluster-info namespaces contexts context", why: "bijou has models instead of namespaces and contexts",
			instead: []string{"juju models"}},
		{commands: "journalctl", why: "bijou keeps its own log",
			instead: []string{"juju debug-log --include UNIT", "juju debug-log"}},
		{commands: "enable disable", why: "a model starts after a reboot only if systemd starts it",
			instead: []string{"bijou install --help"}},
	}
}

// findMissing returns the row for a command line. words begin with the command, which can be two words, such
// as kubectl's rollout restart. command is the row's command as the user typed it, and rest are the words
// after it. ok is false if no row applies.
func findMissing(words []string) (m missing, command string, rest []string, ok bool) {
	if len(words) > 1 {
		m, ok = missingRow(words[0]+":"+words[1], words[2:])
		if ok {
			return m, words[0] + " " + words[1], words[2:], ok
		}
	}

	m, ok = missingRow(words[0], words[1:])
	return m, words[0], words[1:], ok
}

// missingRow returns the first row for the command name that applies to the words after the command. It ignores
// onlyFor, which [missing.wordsFor] checks. ok is false if there is none.
func missingRow(name string, words []string) (m missing, ok bool) {
	for _, m := range missingCommands() {
		isForCommand := slices.Contains(strings.Fields(m.commands), name)
		if isForCommand && (m.matches == nil || m.matches(words)) {
			return m, true
		}
	}
	return missing{}, false
}

// refuseMissing returns an error if the command line is a command of Juju or another tool that bijou lacks, or
// a use of bijou's own command that bijou does not support. The error's hint shows what to type instead, with
// the names that the user gave. For any other command line, refuseMissing returns nil.
func refuseMissing(args []string) error {
	at := commandAt(args)
	if at == len(args) {
		return nil
	}

	m, command, words, ok := findMissing(args[at:])
	if !ok {
		return nil
	}

	words, ok, err := m.wordsFor(args[at:], words)
	if err != nil {
		return err
	}
	if !ok {
		return nil
	}

	names := readNames(words)
	names.model = modelGiven(args)
	names.current = names.model
	// If the command line names no model, the command would use the current one.
	if names.model == "" {
		names.current = currentModel()
	}

	// If the row's own function has no hint, the row's list of hints applies.
	hint := ""
	if m.customHint != nil {
		hint = m.customHint(words, names)
	}
	return console.Hint(console.Usage(m.refusal(command)), cmp.Or(hint, m.advise(names)))
}

// wordsFor returns the words that can contain names for the row's hint. line is the command and everything
// after it, and words are the words after the row's command. ok is false if the row does not apply to the
// command line. A row with onlyFor does not apply to a request for help.
func (m missing) wordsFor(line, words []string) (used []string, ok bool, err error) {
	if m.onlyFor == anyCall {
		// For a command that bijou has, only a row with matches applies. findMissing has called matches.
		ok = m.matches != nil || !isCommand(line[0])
		return words, ok, nil
	}

	// These are the indexes of the words after the command that are neither options nor values of options.
	indexes, err := ownCommand().Words(line)
	if err != nil {
		return nil, false, err
	}

	asksHelp := slices.Contains(words, "--help") || slices.Contains(words, "-h")
	isBare := len(indexes) == 0
	wantsBare := m.onlyFor == bareCalls
	if asksHelp || isBare != wantsBare {
		return nil, false, nil
	}

	for _, i := range indexes {
		used = append(used, line[i])
	}
	return used, true, nil
}

// currentModel returns the model that the shell's environment variables name or, without one, the current model. It
// returns "" if there is neither, although a command then uses the only model if there is just one.
func currentModel() string {
	if name := home.FromShell(); name != "" {
		return name
	}
	h, err := home.Find()
	if err != nil {
		return ""
	}

	return h.Current()
}

// refusal returns the row's error for a command, without a hint.
func (m missing) refusal(command string) error {
	switch {
	case m.onlyFor == callsWithNames:
		return fmt.Errorf("juju %s accepts no name: %s", command, m.why)
	case m.onlyFor == bareCalls:
		return fmt.Errorf("no application given: %s", m.why)
	case m.matches != nil:
		return fmt.Errorf("%s: %s", cmp.Or(m.errorLead, "juju "+command+" does not work like kubectl "+command), m.why)
	}

	return fmt.Errorf("bijou has no command %q: %s", command, m.why)
}

// advise returns a hint from the field instead, with the user's names in place of its placeholders. It chooses the
// first hint whose placeholders can all be replaced. If there is none, it chooses the last hint, if that has no
// placeholders. Otherwise it returns all hints, joined by "or".
func (m missing) advise(names givenNames) string {
	for _, hint := range m.instead {
		if filled, hasPlaceholders, isComplete := names.fill(hint); hasPlaceholders && isComplete {
			return filled
		}
	}

	last := m.instead[len(m.instead)-1]
	if filled, hasPlaceholders, _ := names.fill(last); !hasPlaceholders {
		return filled
	}

	var hints []string
	lead, _, _ := strings.Cut(m.instead[0], ": ")
	for i, hint := range m.instead {
		filled, _, _ := names.fill(hint)
		// If hints begin with the same lead, such as "choose a pool with", only the first one shows it.
		if i > 0 {
			filled = strings.TrimPrefix(filled, lead+": ")
		}
		hints = append(hints, filled)
	}

	return strings.Join(hints, ", or ")
}

// givenNames are the names in a command line that was meant for a different tool. The form of a name decides
// its field, so apps can also contain names of models or secrets.
type givenNames struct {
	apps, units, numbers, files []string
	model                       string // the model that an option names
	current                     string // the model that the command would use, or "" if there is none
}

// readNames returns the applications, units, numbers and files among the words before "--". It skips kinds,
// words with "=", options, and the values of the options that [takesValue] knows. It does not skip the file of
// kubectl's --filename=FILE. It replaces the name of a pod with the name of a unit.
func readNames(words []string) (n givenNames) {
	for i := 0; i < len(words) && words[i] != "--"; i++ {
		word := words[i]
		kind, name, hasKind := strings.Cut(word, "/")
		previous := ""
		if i > 0 {
			previous = words[i-1]
		}
		// app and model are keywords before a name. As the last word, each is itself a name.
		isLast := i+1 == len(words)

		switch {
		case takesValue(word), word == "model" && !isLast:
			// The next word is the option's value, or a model.
			i++
		case word == "app" && !isLast:
			// The next word is the application.
		case strings.HasPrefix(word, "--filename="):
			n.add(strings.TrimPrefix(word, "--filename="))
		case strings.HasPrefix(word, "-"), strings.Contains(word, "="), isKind(word):
			// This word is not a name.
		case hasKind && isKind(kind):
			// In kubectl's KIND/NAME, the name may be a pod's.
			n.add(unitOfPod(name))
		case isPodKind(previous):
			n.add(unitOfPod(word))
		default:
			n.add(word)
		}
	}

	return n
}

// unitOfPod returns the name of the unit for the name of a pod, such as blog/0 for blog-0 or pod/blog-0. It
// returns all other words unchanged. Do not use it for the name of an application, since an application can
// also be named blog-0.
func unitOfPod(word string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(word, "pod/"), "po/")
	if isUnitWord(word) || !podPattern().MatchString(name) {
		return word
	}
	return podPattern().ReplaceAllString(name, "$1/$2")
}

// podPattern matches the name of a pod in a stateful set.
var podPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([a-z][a-z0-9-]*)-(\d+)$`) })

// add adds a word to the units, numbers or files if it has their form, and otherwise to the applications.
func (n *givenNames) add(word string) {
	switch {
	case isUnitWord(word):
		n.units = append(n.units, word)
	case strings.Trim(word, "0123456789") == "":
		n.numbers = append(n.numbers, word)
	case strings.ContainsAny(word, "/."):
		n.files = append(n.files, word)
	default:
		n.apps = append(n.apps, word)
	}
}

// takesValue reports whether the word is an option of compose, kubectl or juju whose value is the next word.
func takesValue(word string) bool {
	return slices.Contains([]string{
		"-n", "--namespace", "-o", "--output", "-c", "--container", "--context", "-l", "--selector",
		"-t", "--timeout", "--tail", "--since", "-m", "--model", "-e", "--environment", "-p", "-s", "--signal",
	}, word)
}

// isKind reports whether the word is a kind of kubectl or of Juju, as people type it after get or describe, or several
// kinds separated by commas.
func isKind(word string) bool {
	if kind, others, several := strings.Cut(word, ","); several {
		return isKind(kind) && isKind(others)
	}

	return slices.Contains(strings.Fields("po pod pods deploy deployment deployments deployment.apps svc service services "+
		"no node nodes sts statefulset statefulsets ds daemonset daemonsets rs replicaset replicasets job jobs all ns namespace "+
		"namespaces pv pvc cm configmap configmaps secret secrets ev event events ep endpoints storage ing ingress ingresses cronjob cronjobs "+
		"application unit machine"), word)
}

// isPodKind reports whether the word is kubectl's kind for pods, or a list of kinds that begins with pods,
// such as po,svc.
func isPodKind(word string) bool { return strings.HasPrefix(word, "po") && isKind(word) }

// placeholder matches a placeholder of a hint. With three dots, a placeholder stands for all names of its kind.
var placeholder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(APP|UNIT|MACHINE|FILE|MODEL|NUMBER|SECRET)\b(\.\.\.)?`)
})

// fill replaces the placeholders of a hint with the given names, quoted for a shell. If the user named a
// model, the juju commands of a hint without MODEL get the option -m. hasPlaceholders reports whether the hint
// has placeholders. isComplete reports whether all of them were replaced.
func (n givenNames) fill(hint string) (filled string, hasPlaceholders, isComplete bool) {
	// The form of a word does not tell a secret from an application, or a machine from a different number.
	given := map[string][]string{
		"APP": n.apps, "SECRET": n.apps, "UNIT": n.units, "MACHINE": n.numbers, "NUMBER": n.numbers, "FILE": n.files,
	}
	if n.current != "" {
		given["MODEL"] = []string{n.current}
	}

	isComplete = true
	filled = placeholder().ReplaceAllStringFunc(hint, func(place string) string {
		hasPlaceholders = true
		name, standsForAll := strings.CutSuffix(place, "...")
		words := given[name]
		if len(words) == 0 {
			isComplete = false
			return place
		}

		if !standsForAll {
			words = words[:1]
		}
		return quoteShellWords(words)
	})

	// A hint with MODEL names the model already.
	if n.model != "" && !strings.Contains(hint, "MODEL") {
		filled = strings.ReplaceAll(filled, "juju ", "juju -m "+quoteShellWords([]string{n.model})+" ")
	}
	return filled, hasPlaceholders, isComplete
}

// modelGiven returns the model that the first -e or -m of a command line names, or "" if there is none.
func modelGiven(args []string) string {
	for i, word := range args {
		option, value, joined := strings.Cut(word, "=")
		if !slices.Contains(modelOptions(), option) {
			continue
		}
		if joined {
			return value
		}
		if i+1 == len(args) {
			return "" // the value is missing
		}
		return args[i+1]
	}

	return ""
}

// modelOptions returns the options of juju that name a model.
func modelOptions() []string { return []string{"-e", "--environment", "-m", "--model"} }

// commandAt returns the index of the command in a command line. Options can precede the command. commandAt
// returns len(args) if there is no command.
func commandAt(args []string) int {
	at := 0
	for at < len(args) && strings.HasPrefix(args[at], "-") {
		if args[at] == "--" {
			return len(args)
		}
		if slices.Contains(modelOptions(), args[at]) {
			at++ // the option's value
		}
		at++
	}

	// If the value of the last option is missing, at is beyond the end.
	return min(at, len(args))
}

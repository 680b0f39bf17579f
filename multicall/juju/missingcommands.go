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

// missing are commands that Juju or another tool has and bijou has not.
type missing struct {
	commands string // separated by spaces
	why      string // one clause
	// instead are hints, with APP, UNIT, MACHINE, FILE and MODEL for names that the user may have given.
	// The first one is shown that asks for names and has got all of them; otherwise the last one if it
	// asks for none, or all.
	instead []string
	// of is for commands that bijou has itself: the row applies only with names behind the command, or
	// only without any.
	of rowOf
	// when is for rows of commands that bijou has itself, and that apply to some words only; nil: to all.
	when func(words []string) bool
	// cannot is the error's beginning of such a row; "": it cannot do the command as kubectl does.
	cannot string
	// advice makes a hint of the words behind the command, in place of instead; it may return "". It may be nil.
	advice func(words []string, names givenNames) string
}

type rowOf int

const (
	anyCall rowOf = iota
	callsWithNames
	bareCalls
)

const (
	noUsers       = "there are no users and no controllers: the owner of the directory BIJOU_HOME may do everything"
	noClouds      = "a model's provider makes its machines, so that there are no clouds, regions or credentials to list"
	noCredentials = "a model has one credential at most, which it gives to trusted applications"
	noContainers  = "a charm installs what it runs, so that there are no images and no containers"
	neverActs     = "another tool's word never removes or restarts anything"
)

// missingCommands returns the commands of Juju, compose and kubectl that bijou lacks, each with the reason
// and the commands to type instead.
func missingCommands() []missing {
	return []missing{
		// Juju's.
		{commands: "offer offers find-offers show-offer remove-offer consume remove-saas", why: "nothing is offered to other models",
			instead: []string{"deploy both applications in one model: juju integrate A B"}},
		{commands: "suspend-relation resume-relation", why: "a relation is there or not, and none is suspended",
			instead: []string{"end it with: juju remove-relation MACHINE, and make it again with: juju integrate A B", "end it with: juju remove-relation A B"}},
		{commands: "spaces add-space show-space remove-space rename-space move-to-space reload-spaces subnets bind", why: "there are no spaces, and all machines reach one another",
			instead: []string{"addresses are in: juju show-machine MACHINE", "addresses are in: juju machines"}},
		{commands: "clouds add-cloud show-cloud update-cloud remove-cloud regions add-k8s remove-k8s update-k8s update-public-clouds default-region set-default-region", why: noClouds,
			instead: []string{"a model on this host: juju bootstrap local; one of containers: juju bootstrap nspawn"}},
		{commands: "auth controllers show-controller register unregister login logout whoami users add-user show-user remove-user enable-user disable-user change-user-password", why: noUsers,
			instead: []string{"juju models"}},
		{commands: "destroy-controller kill-controller", why: "there are no controllers, and each model goes by itself",
			instead: []string{"juju models"}, advice: destroyControllerHint},
		{commands: "grant revoke grant-cloud revoke-cloud", why: noUsers,
			instead: []string{"a secret is granted to an application with: juju grant-secret --help"}},
		{commands: "enable-ha", why: "a model's state is as available as its store",
			instead: []string{"an etcd of three members keeps it, whichever of them dies: juju migrate-state etcd://HOST:2379,HOST:2379,HOST:2379/bijou/NAME"}},
		{commands: "controller-config", why: "there is no controller, and a model has all settings",
			instead: []string{"juju model-config"}},
		{commands: "enable-destroy-controller disable-command enable-command disabled-commands", why: "no command can be disabled",
			instead: []string{"removals ask on a terminal and show what they would do with: juju remove-application NAME --dry-run"}},
		{commands: "import-ssh-key", why: "it fetches nothing from the network",
			instead: []string{"give the key itself: juju add-ssh-key KEY"}},
		{commands: "search", why: "the store is asked by another name",
			instead: []string{"juju find --help"}},
		{commands: "storage-pools create-storage-pool update-storage-pool remove-storage-pool", why: "the pools are rootfs, tmpfs and host:/DIRECTORY, and nobody makes others",
			instead: []string{"name one at: juju deploy FILE --storage NAME=POOL", "name one at: juju deploy CHARM --storage NAME=POOL"}},
		{commands: "application-storage", why: "what a unit gets is said when it is deployed or given more",
			instead: []string{"give a unit more: juju add-storage UNIT NAME=POOL,SIZE", "give a unit more: juju add-storage APP/0 NAME=POOL,SIZE"}},
		{commands: "import-filesystem", why: "storage is a directory, which a pool of the host's can name",
			instead: []string{"juju deploy CHARM --storage NAME=host:/DIRECTORY"}},
		{commands: "wait-for", why: "it waits for states, not for queries",
			instead: []string{"juju wait UNIT --for active", "juju wait APP --for active", "juju wait"}, advice: waitForHint},
		{commands: "wait", why: "it waits for states of units, not for conditions", when: waitsForCondition,
			instead: []string{"juju wait APP --for active"}, advice: conditionHint},
		{commands: "config get", why: "an option's name stands behind --reset", when: resetsNothing, cannot: "cannot reset options",
			instead: []string{"juju config APP --reset OPTION"}, advice: resetHint},
		{commands: "set:env", why: "a charm's options are set, and no variables", when: ofKindOrPath,
			instead: []string{"juju config APP OPTION=VALUE"}, advice: setEnvHint},
		{commands: "run", why: "a charm brings what it runs, and there are no images", when: namesImage,
			instead: []string{"juju deploy CHARM"}, advice: runImageHint},
		{commands: "create:namespace create:ns", why: "a model stands in place of a namespace",
			instead: []string{"juju add-model NAME"}, advice: createNamespaceHint},
		{commands: "create:configmap create:cm", why: "options belong to an application",
			instead: []string{"juju config APPLICATION OPTION=VALUE"}},
		{commands: "create:deployment create:deploy", why: "an application is made of a charm",
			instead: []string{"juju deploy CHARM"}},
		{commands: "use-context use-namespace set-context", why: "a model stands in place of these",
			instead: []string{"juju switch NAME"}, advice: switchHint},
		{commands: "set:image", why: "a charm brings what it runs", when: ofKindOrPath,
			instead: []string{"take a newer charm: juju refresh APP"}},
		{commands: "create:secret", why: "secrets have a command of their own",
			instead: []string{"juju add-secret NAME KEY=VALUE"}, advice: createSecretHint},
		{commands: "backups list-backups download-backup", why: "no controller keeps backups: each is a file where it was written",
			instead: []string{"juju backup FILE"}},
		{commands: "restore-backup", why: "a backup is a file, of which a model is made",
			instead: []string{"juju restore FILE"}},
		{commands: "migrate", why: "there is no controller to migrate a model to",
			instead: []string{"its state moves to another store with: juju migrate-state URL"}},
		{commands: "credentials show-credential show-credentials add-credential autoload-credentials update-credential update-credentials remove-credential default-credential set-default-credential set-default-credentials", why: noCredentials,
			instead: []string{"juju set-credential CLOUD CREDENTIAL --file credentials.yaml"}},
		{commands: "secret-backends add-secret-backend show-secret-backend update-secret-backend remove-secret-backend model-secret-backend", why: "secrets are sealed in the model's state, and nowhere else",
			instead: []string{"juju secrets"}},
		{commands: "firewall-rules set-firewall-rule", why: "it changes no firewall",
			instead: []string{"an application is marked as reachable from outside: juju expose --help"}},
		{commands: "payloads", why: "charms register no payloads",
			instead: []string{"juju show-unit UNIT", "juju status"}},
		{commands: "set-meter-status metrics collect-metrics", why: "nothing is metered",
			instead: []string{"juju show-unit UNIT", "juju status"}},
		{commands: "agree agreements budget plans set-plan sla wallets create-wallet set-wallet show-wallet", why: "nothing is sold",
			instead: []string{"juju status"}},
		{commands: "cached-images remove-cached-images", why: noContainers,
			instead: []string{"juju machines"}},
		{commands: "set-application-base set-series upgrade-series upgrade-machine", why: "an application and its machines keep the base that they began with",
			instead: []string{"deploy a second one beside it: juju deploy CHARM NAME --base BASE"}},
		{commands: "sync-agent-binary sync-agent-binaries sync-tools", why: "there is one binary, which a model copies when it goes over to it",
			instead: []string{"juju upgrade-juju"}},
		{commands: "dump-model dump-db", why: "a model is written as a bundle, or as a backup with all of its state",
			instead: []string{"juju export-bundle"}},
		{commands: "debug", why: "no container is started beside a unit",
			instead: []string{"juju ssh UNIT", "run the hooks by hand: juju debug-hooks UNIT"}},
		{commands: "describe", why: "status has all of them",
			instead: []string{"juju status"}},
		{commands: "debug-code", why: "it stops at no line of a charm's code",
			instead: []string{"run the hooks by hand: juju debug-hooks UNIT"}},
		{commands: "gui upgrade-gui upgrade-dashboard", why: "the page is part of the binary",
			instead: []string{"juju dashboard"}},
		{commands: "completion", why: "it completes for all of its names at once",
			instead: []string{"source <(bijou completion bash)"}},

		// Compose's and kubectl's. Those that remove or restart anything never act.
		{commands: "down", why: neverActs,
			instead: []string{"juju destroy-model MODEL"}},
		{commands: "kill", why: neverActs + ", and a charm itself stops what it runs",
			instead: []string{"remove it with: juju remove-unit UNIT...", "remove it with: juju remove-application APP...", "remove it with: juju remove-machine MACHINE..."}},
		{commands: "storage", why: "it lists the storage of all units", of: callsWithNames,
			instead: []string{"juju show-storage UNIT", "juju show-storage APP"}},
		{commands: "service:ls service:ps service stack stack:ls", why: "status lists them",
			instead: []string{"juju status"}},
		{commands: "node:ls node", why: "machines are listed by another name",
			instead: []string{"juju machines"}},
		{commands: "delete:secret delete:secrets", why: neverActs,
			instead: []string{"juju remove-secret APP", "juju remove-secret NAME"}},
		{commands: "delete:pvc delete:pv", why: neverActs,
			instead: []string{"juju storage"}},
		{commands: "delete:namespace delete:ns", why: neverActs,
			instead: []string{"juju destroy-model APP", "juju destroy-model MODEL"}},
		{commands: "rm delete", why: neverActs,
			instead: []string{"juju remove-unit UNIT...", "juju remove-application APP...", "juju remove-machine MACHINE..."}},
		{commands: "stop", why: "it ends a model's background process, and a charm itself stops what it runs", of: callsWithNames,
			instead: []string{"remove it with: juju remove-unit UNIT...", "remove it with: juju remove-application APP..."}},
		{commands: "start", why: "it starts a model's background process, and a charm starts what it runs", of: callsWithNames,
			instead: []string{"run what has failed again: juju resolved --retry UNIT", "its units are in: juju status APP"}},
		{commands: "restart reload", why: neverActs + ", and a charm restarts what it runs",
			instead: []string{"after a failure: juju resolved --retry UNIT", "after a failure: juju resolved --retry APP/0"}},
		{commands: "up apply create", why: "there is no file of wanted states, other than a bundle",
			instead: []string{"juju deploy FILE", "juju bootstrap makes a model, juju deploy CHARM an application"}, advice: upHint},
		{commands: "pull", why: noContainers,
			instead: []string{"take a newer charm: juju refresh APP"}},
		{commands: "images image push commit save load import", why: noContainers,
			instead: []string{"applications and their charms are in: juju status"}},
		{commands: "build", why: noContainers,
			instead: []string{"a charm is deployed from its directory: juju deploy FILE", "a charm is deployed from its directory: juju deploy ./CHARM"}},
		{commands: "rollout:restart", why: neverActs + ", and a charm restarts what it runs",
			instead: []string{"after a failure: juju resolved --retry UNIT", "after a failure: juju resolved --retry APP/0"}},
		{commands: "rollout:undo", why: neverActs,
			instead: []string{"go back to the previous charm: juju rollback APP"}},
		{commands: "rollout rollout:status rollout:history rollout:pause rollout:resume", why: "units take a new charm one after another by themselves",
			instead: []string{"see how far they are: juju status APP", "see how far they are: juju status"}},
		{commands: "config get", why: "options belong to an application", of: bareCalls,
			instead: []string{"juju config APP; of the whole model: juju export-bundle"}},
		{commands: "top stats", why: "it measures no CPU and no memory",
			instead: []string{"ask the machine: juju ssh UNIT top -b -n 1", "ask the machine: juju exec --application APP -- top -b -n 1", "ask the machine: juju exec --all -- top -b -n 1"}},
		{commands: "watch", why: "status itself does that",
			instead: []string{"juju status --watch APP", "juju status --watch UNIT", "juju status --watch"}},
		{commands: "events", why: "a unit keeps its last hooks, and what they wrote",
			instead: []string{"juju hook-history UNIT", "juju debug-log --include 'APP/*'", "juju debug-log"}},
		{commands: "diff", why: "only a bundle can be compared with a model",
			instead: []string{"juju diff-bundle FILE"}},
		{commands: "explain api-resources", why: "it has no resources to explain",
			instead: []string{"why a unit is as it is: juju show-unit UNIT", "juju documentation"}},
		{commands: "port-forward proxy", why: "a unit's ports are those of its machine",
			instead: []string{"juju show-unit UNIT", "they and its address are in: juju status APP", "they and its address are in: juju status"}},
		{commands: "port ports", why: "status has each unit's ports",
			instead: []string{"juju status UNIT", "juju status APP", "juju status"}},
		{commands: "label annotate", why: "nothing has labels",
			instead: []string{"juju show-application APP", "juju status"}},
		{commands: "cordon uncordon drain taint", why: "units go to a machine only where somebody puts them",
			instead: []string{"what runs there: juju show-machine MACHINE", "what runs where: juju machines"}},
		{commands: "attach", why: "a unit has no console",
			instead: []string{"juju debug-log --follow --include UNIT", "juju debug-log --follow --include 'APP/*'", "juju debug-log --follow"},
			advice:  attachHint},
		{commands: "pause unpause", why: "a unit that runs cannot be paused",
			instead: []string{"end what its hook does: juju interrupt UNIT", "juju stop ends a model's background process, juju start goes on"}},
		{commands: "edit patch replace", why: "nothing is edited in place",
			instead: []string{"juju config APP OPTION=VALUE"}},
		{commands: "autoscale", why: "nothing scales by itself",
			instead: []string{"juju scale APP=N"}},
		{commands: "volume volumes", why: "volumes are storage here",
			instead: []string{"juju storage"}},
		{commands: "network networks", why: "there are no networks to choose, and all machines reach one another",
			instead: []string{"juju machines"}},
		{commands: "units apps applications services pods nodes containers", why: "status lists them",
			instead: []string{"juju status APP", "juju status"}},
		{commands: "cluster-info namespaces contexts context", why: "models stand in place of these",
			instead: []string{"juju models"}},
		{commands: "journalctl", why: "it has a log of its own",
			instead: []string{"juju debug-log --include UNIT", "juju debug-log"}},
		{commands: "enable disable", why: "a model comes back after a reboot if systemd starts it",
			instead: []string{"bijou install --help"}},
	}
}

// findMissing returns the row of a command, or of two words as kubectl's rollout restart, and the words behind it.
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

// missingRow returns the first row of that name that applies to the words behind it.
func missingRow(name string, words []string) (missing, bool) {
	for _, m := range missingCommands() {
		if slices.Contains(strings.Fields(m.commands), name) && (m.when == nil || m.when(words)) {
			return m, true
		}
	}
	return missing{}, false
}

// refuseMissing returns an error for a command of Juju, compose or kubectl that bijou lacks. Its hint names
// bijou's command, with the names of the call.
func refuseMissing(args []string) error {
	at := commandAt(args)
	if at == len(args) {
		return nil
	}

	m, command, words, ok := findMissing(args[at:])
	if !ok {
		return nil
	}

	names := readNames(words)
	switch m.of {
	case anyCall:
		if isCommand(args[at]) && m.when == nil {
			return nil
		}
	case bareCalls, callsWithNames: // values of options are no names
		indexes, err := ownCommand().Words(args[at:])
		asked := slices.Contains(words, "--help") || slices.Contains(words, "-h")
		if err != nil || asked || (len(indexes) == 0) != (m.of == bareCalls) {
			return err
		}

		words = nil
		for _, i := range indexes {
			words = append(words, args[at+i])
		}
		names = readNames(words)
	}

	names.model = modelGiven(args)
	names.current = cmp.Or(names.model, home.FromShell())
	if h, err := home.Find(); err == nil && names.current == "" {
		names.current = h.Current()
	}

	err := fmt.Errorf("bijou has no command %q: %s", command, m.why)
	if m.when != nil {
		err = fmt.Errorf("%s: %s", cmp.Or(m.cannot, "cannot "+command+" as kubectl does"), m.why)
	}
	switch m.of {
	case callsWithNames:
		err = fmt.Errorf("juju %s takes no name: %s", command, m.why)
	case bareCalls:
		err = fmt.Errorf("no application given: %s", m.why)
	}

	hint := ""
	if m.advice != nil {
		hint = m.advice(words, names)
	}
	return console.Hint(console.Usage(err), cmp.Or(hint, m.advise(names)))
}

// advise returns the hint with the command to type, with the names that the user gave.
func (m missing) advise(names givenNames) string {
	var all []string
	lead, _, _ := strings.Cut(m.instead[0], ": ")
	for i, hint := range m.instead {
		filled, asks, complete := names.fill(hint)
		if asks && complete {
			return filled
		}
		if i > 0 { // the same words lead to both
			filled = strings.TrimPrefix(filled, lead+": ")
		}
		all = append(all, filled)
	}

	last := m.instead[len(m.instead)-1]
	if filled, asks, _ := names.fill(last); !asks {
		return filled
	}

	return strings.Join(all, ", or ")
}

// givenNames are the names in a command line of another tool's.
type givenNames struct {
	apps, units, machines, files []string
	model                        string // that an option names
	current                      string // the one that the command would be of; "" if there is none
}

// readNames sorts words by the kinds of things that they can name. It leaves out options, KEY=VALUE, and
// kubectl's kinds.
func readNames(words []string) (n givenNames) {
	for i := 0; i < len(words) && words[i] != "--"; i++ {
		word := words[i]
		kind, name, ofKind := strings.Cut(word, "/")
		switch {
		case otherValue(word), word == "model" && i+1 < len(words):
			i++
		case word == "app" && i+1 < len(words):
		case strings.HasPrefix(word, "-"), strings.Contains(word, "="), isKind(word):
		case ofKind && isKind(kind):
			n.add(unitOfPod(name))
		case i > 0 && strings.HasPrefix(words[i-1], "po") && isKind(words[i-1]):
			n.add(unitOfPod(word))
		default:
			n.add(word)
		}
	}

	return n
}

// unitOfPod returns the unit that kubectl would call by that name, with pod/ in front or without; all other words
// as they are. Where an application may stand, the word is not to be given: blog-0 may be one's name.
func unitOfPod(word string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(word, "pod/"), "po/")
	if isUnitWord(word) || !podPattern().MatchString(name) {
		return word
	}
	return podPattern().ReplaceAllString(name, "$1/$2")
}

// podPattern is of a pod's name as a stateful set has it.
var podPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([a-z][a-z0-9-]*)-(\d+)$`) })

// add adds a word to the names of its form: a unit, a machine, a file, or else an application.
func (n *givenNames) add(word string) {
	switch {
	case isUnitWord(word):
		n.units = append(n.units, word)
	case strings.Trim(word, "0123456789") == "":
		n.machines = append(n.machines, word)
	case strings.ContainsAny(word, "/."):
		n.files = append(n.files, word)
	default:
		n.apps = append(n.apps, word)
	}
}

// otherValue reports whether an option of compose's or kubectl's takes the next word.
func otherValue(word string) bool {
	return slices.Contains([]string{
		"-n", "--namespace", "-o", "--output", "-c", "--container", "--context", "-l", "--selector",
		"-t", "--timeout", "--tail", "--since", "-m", "--model", "-e", "--environment", "-p", "-s", "--signal",
	}, word)
}

// isKind reports whether the word is a kind of kubectl's, or several with commas.
func isKind(word string) bool {
	if kind, others, several := strings.Cut(word, ","); several {
		return isKind(kind) && isKind(others)
	}

	return slices.Contains(strings.Fields("po pod pods deploy deployment deployments deployment.apps svc service services "+
		"no node nodes sts statefulset statefulsets ds daemonset daemonsets rs replicaset replicasets job jobs all ns namespace "+
		"namespaces pv pvc cm configmap configmaps secret secrets ev event events ep endpoints storage ing ingress ingresses cronjob cronjobs "+
		"application unit machine"), word)
}

var placeholder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(APP|UNIT|MACHINE|FILE|MODEL)\b(\.\.\.)?`)
})

// fill puts the given names in the places of a hint, quoted for a shell.
func (n givenNames) fill(hint string) (filled string, asks, complete bool) {
	given := map[string][]string{"APP": n.apps, "UNIT": n.units, "MACHINE": n.machines, "FILE": n.files}
	complete = true
	ofModel := n.model != "" && !strings.Contains(hint, "MODEL")
	if n.current != "" {
		given["MODEL"] = []string{n.current}
	}

	filled = placeholder().ReplaceAllStringFunc(hint, func(place string) string {
		asks = true
		name, several := strings.CutSuffix(place, "...")
		words := given[name]
		switch {
		case len(words) == 0:
			complete = false
			return place
		case !several:
			words = words[:1]
		}
		return quoteShellWords(words)
	})

	if ofModel {
		filled = strings.ReplaceAll(filled, "juju ", "juju -m "+quoteShellWords([]string{n.model})+" ")
	}
	return filled, asks, complete
}

// modelGiven returns the model that a command line names; "" if it names none.
func modelGiven(args []string) string {
	for i, word := range args {
		option, value, joined := strings.Cut(word, "=")
		if !slices.Contains(modelOptions(), option) {
			continue
		}
		if joined || i+1 == len(args) {
			return value
		}
		return args[i+1]
	}

	return ""
}

func modelOptions() []string { return []string{"-e", "--environment", "-m", "--model"} }

// commandAt returns the index of the command in a command line, behind options; its length if there is none.
func commandAt(args []string) int {
	at := 0
	for at < len(args) && strings.HasPrefix(args[at], "-") {
		if args[at] == "--" {
			return len(args)
		}
		if slices.Contains(modelOptions(), args[at]) {
			at++
		}
		at++
	}

	return min(at, len(args))
}

package juju

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
)

// inOwnWords returns the command line that bijou has for one in the words of Juju or another tool,
// where the two do the same. All others it returns as they are.
func inOwnWords(args []string) []string {
	if len(args) > 1 && args[0] == "help" {
		if topic := helpTopic(args[1]); topic != "" {
			return append([]string{topic}, args[2:]...)
		}
	}

	args = behindCommand(console.OrHelp(args))
	at := commandAt(args)
	if at == len(args) {
		return args
	}

	words := args[at+1:]
	if IsOtherTool(args[at]) {
		return inOwnWords(slices.Concat(args[:at], cutProject(words)))
	}
	twin, isList := strings.CutPrefix(args[at], "list-")
	switch command := args[at]; {
	case command == "logs":
		words = append([]string{"debug-log"}, logWords(words)...)
	case command == "describe", command == "inspect":
		words = describeWords(words)
	case command == "deploy" && len(words) > 1 && slices.Contains([]string{"-f", "--filename"}, words[0]):
		words = append([]string{command}, words[1:]...)
	case command == "expose", command == "unexpose":
		words = append([]string{command}, withoutKind(words)...)
	case command == "create-backup":
		words = append([]string{"backup"}, backupWords(words, time.Now())...)
	case isList && !isCommand(command):
		words = append([]string{twin}, words...)
	default:
		return args
	}

	return slices.Concat(args[:at], words)
}

// IsOtherTool reports whether the word is a tool whose verbs juju also has: juju compose up means juju up.
func IsOtherTool(word string) bool {
	return slices.Contains([]string{"compose", "docker", "docker-compose", "kubectl"}, word)
}

// cutProject removes compose's options about files from the front of words. A model takes the place of such
// files.
func cutProject(words []string) []string {
	for len(words) > 1 {
		option, _, joined := strings.Cut(words[0], "=")
		switch {
		case !slices.Contains([]string{"-f", "--file", "--env-file", "--project-directory", "--profile", "--kubeconfig"}, option):
			return words
		case joined:
			words = words[1:]
		default:
			words = words[2:]
		}
	}

	return words
}

// namespaceOptions returns the options of kubectl and compose that name a namespace or project, which is a
// model here.
func namespaceOptions() []string {
	return []string{"-n", "--namespace", "--context", "-p", "--project-name"}
}

// countIgnored returns how many words at the beginning of args are an option of Juju's that changes nothing,
// with its value.
func countIgnored(args []string) int {
	option, _, joined := strings.Cut(args[0], "=")
	switch {
	case slices.Contains([]string{"--debug", "-v", "--verbose", "-q", "--quiet", "--show-log"}, option):
		return 1
	case option != "--logging-config":
		return 0
	case joined:
		return 1
	}

	return min(2, len(args))
}

// behindCommand moves options of Juju's that change nothing from before the command to after it, where each
// command accepts them. A namespace of kubectl's or a project of compose's there names a model.
func behindCommand(args []string) []string {
	if len(args) > 0 && args[0] == console.CompleteOption {
		return args
	}

	args = slices.Clone(args)
	var moved []string
	at := 0
	for at < len(args) {
		if n := countIgnored(args[at:]); n > 0 {
			moved = append(moved, args[at:at+n]...)
			args = slices.Concat(args[:at], args[at+n:])
			continue
		}

		option, _, joined := strings.Cut(args[at], "=")
		if !strings.HasPrefix(option, "-") || option == "--" {
			break // it is the command
		}

		switch isNamespace := slices.Contains(namespaceOptions(), option); {
		case isNamespace && joined:
			args[at] = "--model" + args[at][len(option):]
		case isNamespace:
			option = "-m"
			args[at] = option
		}

		at++
		if slices.Contains(modelOptions(), option) && !joined && at < len(args) {
			at++ // the model's name
		}
	}

	if at == len(args) {
		return append(args, moved...)
	}
	return slices.Concat(args[:at+1], moved, args[at+1:])
}

// helpTopic returns the command that prints one of Juju's help topics; "" if it is none.
func helpTopic(word string) string {
	switch word {
	case "commands", "topics", "all":
		return "documentation"
	case "hook-tools", "hook-commands", "hook-tool", "hook-command", "tools", "tool":
		return "help-hook-commands"
	case "action-commands", "action-command", "action-tools":
		return "help-action-commands"
	}

	return ""
}

// logWords returns the arguments of juju debug-log that correspond to those of compose's or kubectl's logs.
func logWords(words []string) []string {
	own := []string{"debug-log"}
	follows := slices.Contains(words, "-f") || slices.Contains(words, "--follow")
	if !follows {
		own = append(own, "--no-tail")
	}

	for i := 0; i < len(words); i++ {
		option, value, joined := strings.Cut(words[i], "=")
		selects := option == "--selector" || option == "-l" && i+1 < len(words) && strings.Contains(words[i+1], "=")
		inNamespace := option == "--namespace" || option == "-n" && !joined && i+1 < len(words) && strings.Trim(words[i+1], "0123456789") != ""
		takesValue := selects || inNamespace || option == "--tail" || option == "--since-time"
		if takesValue && !joined && i+1 < len(words) {
			i++
			value = words[i]
		}

		switch {
		case selects:
			_, app, _ := strings.Cut(value, "=")
			own = append(own, app)
		case inNamespace:
			own = append(own, "--model="+value)
		case option == "--since-time":
			own = append(own, "--since="+value)
		case option == "--tail":
			if value == "all" || value == "-1" {
				value = "0"
			}
			own = append(own, "--lines="+value)
		case slices.Contains(logOptions(), option): // as it is
		default:
			own = append(own, words[i])
		}
	}

	sources, err := ownCommand().Words(own)
	if err != nil {
		return own[1:]
	}
	for _, i := range sources {
		own[i] = "--include=" + logSource(own[i])
	}

	return own[1:]
}

// logOptions returns the options of compose's and kubectl's logs for things that debug-log does by itself.
func logOptions() []string {
	return []string{
		"-t", "--timestamps", "--no-log-prefix", "--prefix",
	}
}

// logSource returns the pattern of the log's lines of an application, a unit or a machine.
func logSource(word string) string {
	names := readNames([]string{word})
	switch {
	case len(names.units) > 0:
		return names.units[0]
	case len(names.machines) > 0:
		return "machine-" + names.machines[0]
	case len(names.apps) > 0:
		return names.apps[0] + "/*"
	}

	return word
}

// withoutKind drops kubectl's kind in front of the name that it is of: deployment web, deployment/web.
func withoutKind(words []string) []string {
	i := slices.IndexFunc(words, func(word string) bool { return !strings.HasPrefix(word, "-") })
	if i < 0 {
		return words
	}

	kind, name, joined := strings.Cut(words[i], "/")
	switch {
	case !isKind(kind):
		return words
	case joined:
		return slices.Concat(words[:i], []string{name}, words[i+1:])
	case i+1 < len(words) && !strings.HasPrefix(words[i+1], "-"):
		return slices.Concat(words[:i], words[i+1:])
	}

	return words
}

// describeWords chooses between juju show-unit, show-application and show-machine by the first name.
func describeWords(words []string) []string {
	if len(words) > 1 && isKind(words[0]) && !strings.HasPrefix(words[1], "-") {
		words = append([]string{words[0] + "/" + words[1]}, words[2:]...)
	}
	if len(words) == 0 {
		return []string{"show-unit"}
	}

	names := readNames(words[:1])
	rest := words[1:]
	kind, name, _ := strings.Cut(words[0], "/")
	switch {
	case name != "" && slices.Contains([]string{"secret", "secrets"}, kind):
		return append([]string{"show-secret", name}, rest...)
	case name != "" && slices.Contains([]string{"pv", "pvc", "storage"}, kind):
		return append([]string{"show-storage", name}, rest...)
	case isKind(words[0]): // all of them
		return append([]string{"describe"}, words...)
	case len(names.machines) > 0:
		return append([]string{"show-machine", names.machines[0]}, rest...)
	case len(names.apps) > 0:
		return append([]string{"show-application", names.apps[0]}, rest...)
	case len(names.units) > 0:
		return append([]string{"show-unit", names.units[0]}, rest...)
	}

	return append([]string{"show-unit"}, words...)
}

// backupWords returns the words for juju backup: options of the model, other options, and the file. The file
// is that of --filename or, without one, has the name that Juju would choose.
func backupWords(words []string, now time.Time) []string {
	file := ""
	var others []string
	for i := 0; i < len(words); i++ {
		option, value, joined := strings.Cut(words[i], "=")
		switch {
		case option == "--filename" && joined:
			file = value
		case option == "--filename" && i+1 < len(words):
			i++
			file = words[i]
		case slices.Contains(modelOptions(), option) && !joined && i+1 < len(words):
			others = append(others, words[i:i+2]...)
			i++
		case strings.HasPrefix(option, "-"):
			others = append(others, words[i])
		}
	}

	return append(others, cmp.Or(file, "juju-backup-"+now.UTC().Format("20060102-150405")+".tar.gz"))
}

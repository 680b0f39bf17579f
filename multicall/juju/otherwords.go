package juju

import (
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
)

// translateArgs returns the command line in bijou's own words. It replaces commands of Juju and of other tools,
// and translates their arguments. It drops kubectl's own words from the arguments of deploy, expose and unexpose. It
// rewrites the options before the command, as [normalizeOptions] describes.
func translateArgs(args []string) []string {
	if len(args) > 1 && args[0] == "help" {
		if topic := helpTopic(args[1]); topic != "" {
			return append([]string{topic}, args[2:]...)
		}
	}

	// OrHelp replaces no arguments, and help COMMAND, with --help.
	args = normalizeOptions(console.OrHelp(args))
	at := commandAt(args)
	if at == len(args) {
		return args
	}

	command := args[at]
	words := args[at+1:]
	if IsOtherTool(command) {
		// The tool's verb, such as up, becomes the command.
		return translateArgs(slices.Concat(args[:at], cutToolOptions(words)))
	}

	// Juju also accepts list-models for models, for example.
	listed, isList := strings.CutPrefix(command, "list-")
	switch {
	case command == "logs":
		words = append([]string{"debug-log"}, logWords(words)...)
	case command == "describe", command == "inspect":
		words = describeWords(words)
	case command == "deploy":
		words = append([]string{command}, withoutFileOption(words)...)
	case command == "expose", command == "unexpose":
		words = append([]string{command}, withoutKind(words)...)
	case command == "create-backup":
		words = append([]string{"backup"}, backupWords(words, time.Now())...)
	case isList && !isCommand(command):
		words = append([]string{listed}, words...)
	default:
		return args
	}

	return slices.Concat(args[:at], words)
}

// withoutFileOption drops kubectl's option in front of a file's name, as in -f FILE or --filename=FILE, if words
// begin with it.
func withoutFileOption(words []string) []string {
	if len(words) == 0 {
		return words
	}

	option, file, joined := strings.Cut(words[0], "=")
	switch {
	case option != "-f" && option != "--filename":
		return words
	case joined:
		return append([]string{file}, words[1:]...)
	case len(words) > 1:
		return words[1:]
	}

	return words
}

// IsOtherTool reports whether the word is a tool whose verbs juju also accepts. For example, juju compose up
// means juju up.
func IsOtherTool(word string) bool {
	return slices.Contains([]string{"compose", "docker", "docker-compose", "kubectl"}, word)
}

// cutToolOptions removes options that choose files and profiles of compose and kubectl, with their values, from
// the front of words. bijou has models instead of such files. An option that is the only word left stays.
func cutToolOptions(words []string) []string {
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

// namespaceOptions returns the options of kubectl and compose that name a namespace or project. Here, both are
// models.
func namespaceOptions() []string {
	return []string{"-n", "--namespace", "--context", "-p", "--project-name"}
}

// countIgnored returns how many words at the beginning of args belong to an option of Juju that bijou ignores:
// the option and, as a separate word, its value. It returns 0 if args begin with any other word. args must not
// be empty.
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

// normalizeOptions rewrites the options before the command. It moves options without effect, such as --debug,
// after the command, where each command accepts them. It replaces kubectl's and compose's options for a
// namespace or project with -m or --model. It does not change a call by which the shell asks for completions.
func normalizeOptions(args []string) []string {
	if len(args) > 0 && args[0] == console.CompleteOption {
		return args
	}

	var kept, ignored []string
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "--" {
		if n := countIgnored(args); n > 0 {
			ignored = append(ignored, args[:n]...)
			args = args[n:]
			continue
		}

		words := firstOption(args)
		kept = append(kept, words...)
		args = args[len(words):]
	}

	if len(args) == 0 {
		return append(kept, ignored...)
	}
	return slices.Concat(kept, args[:1], ignored, args[1:])
}

// firstOption returns the option at the beginning of args. If the option names a model, it also returns the
// model's name. It replaces an option for a namespace or project with -m or --model.
func firstOption(args []string) []string {
	option, value, joined := strings.Cut(args[0], "=")
	isNamespace := slices.Contains(namespaceOptions(), option)
	namesModel := isNamespace || slices.Contains(modelOptions(), option)

	if isNamespace && joined {
		return []string{"--model=" + value}
	}
	if joined || !namesModel {
		return args[:1]
	}

	words := slices.Clone(args[:min(2, len(args))])
	if isNamespace {
		words[0] = "-m"
	}
	return words
}

// helpTopic returns the command that prints one of Juju's help topics, or "" if word is not a topic.
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

// logWords returns the arguments of juju debug-log that correspond to the words of compose's or kubectl's logs.
// Without an option to follow the log, it adds --no-tail, since debug-log follows the log on a terminal.
func logWords(words []string) []string {
	var translated []string
	isFollow := func(word string) bool { return word == "-f" || word == "--follow" || word == "--follow=true" }
	if !slices.ContainsFunc(words, isFollow) {
		translated = append(translated, "--no-tail")
	}

	for i := 0; i < len(words); i++ {
		option, value, joined := strings.Cut(words[i], "=")
		next := ""
		hasNext := i+1 < len(words)
		if hasNext {
			next = words[i+1]
		}

		isSelector := isSelectorOption(option, next)
		// Only the whole word -n can be kubectl's option: -n=5 is a number of lines.
		isNamespace := isNamespaceOption(words[i], next)
		wantsValue := isSelector || isNamespace || option == "--tail" || option == "--since-time"
		if wantsValue && !joined && hasNext {
			i++
			value = next
		}

		switch {
		case isSelector:
			// The value is LABEL=APPLICATION.
			_, app, _ := strings.Cut(value, "=")
			translated = append(translated, app)
		case isNamespace:
			translated = append(translated, "--model="+value)
		case option == "--since-time":
			translated = append(translated, "--since="+value)
		case option == "--tail":
			if value == "all" || value == "-1" {
				// debug-log prints all lines for 0.
				value = "0"
			}
			translated = append(translated, "--lines="+value)
		case slices.Contains(logOptions(), option):
			// debug-log needs no such option, since it always prints the time and source of each message.
		default:
			translated = append(translated, words[i])
		}
	}

	// debug-log selects units, applications and machines by an option.
	return includeSources(translated)
}

// isSelectorOption reports whether an option of logs is kubectl's selector, as in -l app=web. next is the word
// after the option. If it contains no "=", -l is debug-log's option for the level.
func isSelectorOption(option, next string) bool {
	return option == "--selector" || option == "-l" && strings.Contains(next, "=")
}

// isNamespaceOption reports whether a word of logs is kubectl's option for a namespace. next is the word after
// it. If next is a number, -n is compose's option for the number of lines, which debug-log also has.
func isNamespaceOption(word, next string) bool {
	option, _, _ := strings.Cut(word, "=")
	isNumber := strings.Trim(next, "0123456789") == ""
	return option == "--namespace" || word == "-n" && !isNumber
}

// includeSources replaces each argument of debug-log, except options and their values, with the option that selects
// the log of the unit, application or machine of that name. It changes nothing after two dashes.
func includeSources(args []string) []string {
	line := append([]string{"debug-log"}, args...)
	// Words leaves out options and their values.
	indexes, err := ownCommand().Words(line)
	if err != nil {
		// The same error ends the command when it parses its arguments.
		return args
	}

	for _, i := range indexes {
		line[i] = "--include=" + logSource(line[i])
	}
	return line[1:]
}

// logOptions returns the options of compose's and kubectl's logs that add or omit the time or source of a message.
// debug-log has none of them, since it always prints both.
func logOptions() []string {
	return []string{
		"-t", "--timestamps", "--no-log-prefix", "--prefix",
	}
}

// logSource returns the pattern that selects the log of the application, unit or machine that word names. It returns
// any other word unchanged, such as a pattern.
func logSource(word string) string {
	names := readNames([]string{word})
	switch {
	case len(names.units) > 0:
		return names.units[0]
	case len(names.numbers) > 0:
		return "machine-" + names.numbers[0]
	case len(names.apps) > 0:
		return names.apps[0] + "/*"
	}

	return word
}

// withoutKind drops kubectl's kind in front of the first name, as in deployment web or deployment/web.
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

	// No name follows the kind.
	return words
}

// describeWords translates the arguments of kubectl describe and docker inspect. It returns the juju command
// that shows the named object, such as show-unit or show-secret, and its arguments. For a kind without a name it
// returns "describe" and the unchanged arguments. For any other words, it returns show-unit with these words.
func describeWords(words []string) []string {
	if len(words) == 0 {
		// show-unit prints that it needs a unit's name.
		return []string{"show-unit"}
	}
	if len(words) > 1 && isKind(words[0]) && !strings.HasPrefix(words[1], "-") {
		// The words KIND NAME become KIND/NAME.
		words = append([]string{words[0] + "/" + words[1]}, words[2:]...)
	}

	names := readNames(words[:1])
	options := words[1:]
	kind, name, _ := strings.Cut(words[0], "/")
	switch {
	case name != "" && slices.Contains([]string{"secret", "secrets"}, kind):
		return append([]string{"show-secret", name}, options...)
	case name != "" && slices.Contains([]string{"pv", "pvc", "storage"}, kind):
		return append([]string{"show-storage", name}, options...)
	case isKind(words[0]):
		// A kind without a name stands for all objects of that kind.
		return append([]string{"describe"}, words...)
	case len(names.numbers) > 0:
		return append([]string{"show-machine", names.numbers[0]}, options...)
	case len(names.apps) > 0:
		return append([]string{"show-application", names.apps[0]}, options...)
	case len(names.units) > 0:
		return append([]string{"show-unit", names.units[0]}, options...)
	}

	return append([]string{"show-unit"}, words...)
}

// backupWords translates the arguments of Juju's create-backup. It returns the arguments of juju backup: the
// options and the file. The file is the value of --filename or, without that option, has the name that Juju
// would choose. It drops all other words, which are notes in Juju.
func backupWords(words []string, now time.Time) []string {
	file := ""
	var options []string
	for i := 0; i < len(words); i++ {
		option, value, joined := strings.Cut(words[i], "=")
		switch {
		case option == "--filename" && joined:
			file = value
		case option == "--filename" && i+1 < len(words):
			i++
			file = words[i]
		case slices.Contains(append(modelOptions(), "--timeout"), option) && !joined && i+1 < len(words):
			options = append(options, words[i:i+2]...)
			i++
		case strings.HasPrefix(option, "-"):
			options = append(options, words[i])
		}
	}

	if file == "" {
		file = "juju-backup-" + now.UTC().Format("20060102-150405") + ".tar.gz"
	}
	return append(options, file)
}

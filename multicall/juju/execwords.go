package juju

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"bijou/multicall/console"
)

// cutCommand separates the command line of `juju exec` and `juju run` into juju's own words and the command
// to run, so that no word of the command counts as an option of juju. For any other command line, own is args, and
// command is empty. The command begins after two dashes or, for exec, where cutBareCommand finds it. Without a command,
// command is empty.
//
// Two forms of other tools are translated. A --wait without a time, which is Juju 2's, is left out. The run of Docker
// Compose, which has options for variables and a directory, becomes exec. Its command then sets these itself.
func cutCommand(args []string) (own, command []string, err error) {
	at := commandAt(args)
	if at == len(args) {
		return args, nil, nil
	}
	takesCommand := args[at] == "run" || args[at] == "exec"
	// The shell's request for completions needs the words as they are.
	if args[0] == console.CompleteOption || !takesCommand {
		return args, nil, nil
	}

	args = withoutBareWait(args)
	at = commandAt(args) // a --wait before the command is gone
	// With options for variables or a directory, this is compose's run. The options are removed below, once the words
	// of the command are known.
	if _, s := cutSurroundings(args, at); !s.isEmpty() {
		args = slices.Clone(args)
		args[at] = "exec"
	}

	own = args
	if args[at] == "exec" {
		// After an error, command is empty. The error is returned below.
		own, command, err = cutBareCommand(args, at)
	}
	// A bare command can have its own two dashes, so dashes count only without a bare command.
	dashes := slices.Index(args, "--")
	if len(command) == 0 && dashes >= 0 {
		own = args[:dashes]
		command = args[dashes+1:]
	}

	own, s := cutSurroundings(own, at)
	return own, s.around(command), err
}

// withoutBareWait removes Juju 2's --wait without a time, since exec and run wait by default.
func withoutBareWait(args []string) (kept []string) {
	for i, word := range args {
		if word == "--" {
			return append(kept, args[i:]...)
		}

		hasValue := i+1 < len(args) && !strings.HasPrefix(args[i+1], "-")
		if word == "--wait" && !hasValue {
			continue
		}
		kept = append(kept, word)
	}

	return kept
}

// variable matches the value of compose's -e NAME=VALUE. The name of an environment never matches.
var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_]\w*=`) })

// surroundings are the environment variables and the working directory that options of compose's exec and run
// set for a command.
type surroundings struct {
	variables []string
	directory string // empty for the charm's directory
}

// isEmpty reports whether no option sets a variable or a directory.
func (s surroundings) isEmpty() bool { return len(s.variables) == 0 && s.directory == "" }

// cutSurroundings separates the options that set a command's variables and directory from all other
// arguments. It only reads options after the word exec or run, whose index is at, and before two dashes.
func cutSurroundings(args []string, at int) (own []string, s surroundings) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(own, args[i:]...), s
		}

		option, value, joined := strings.Cut(args[i], "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch {
		case i > at && (option == "--env" || option == "-e") && variable().MatchString(value):
			// The value of juju's own -e is a model, and never matches.
			s.variables = append(s.variables, value)
		case i > at && (option == "--workdir" || option == "-w") && value != "":
			s.directory = value
		default:
			own = append(own, args[i])
			continue
		}

		if !joined {
			// The option's value is a word of its own.
			i++
		}
	}

	return own, s
}

// around returns a command that runs the given command with the variables and in the directory. Each of the
// two commands is a program with its arguments or, if it is a single word, a line for a shell. Without variables
// and directory, or for an empty command, around returns the command unchanged.
func (s surroundings) around(command []string) []string {
	if s.isEmpty() || len(command) == 0 {
		return command
	}

	line := command[0]
	if len(command) > 1 {
		line = quoteShellWords(command)
	}

	if len(s.variables) > 0 {
		line = "export " + quoteShellWords(s.variables) + "; " + line
	}
	if s.directory != "" {
		line = "cd " + quoteShellWords([]string{s.directory}) + " || exit; " + line
	}
	return []string{line}
}

// asShellRuns returns the command as a single line for a shell if only a shell can run the command. Its first
// word is then not a program, but a builtin such as exit, or NAME=VALUE. Otherwise asShellRuns returns the
// command unchanged. In Juju, a shell runs all commands.
func asShellRuns(command []string) []string {
	builtins := []string{
		".", "alias", "cd", "command", "declare", "eval", "exec", "exit", "export", "hash", "local", "readonly", "return", "set",
		"shift", "shopt", "source", "trap", "type", "ulimit", "umask", "unset", "wait",
	}
	// A command of one word is a line for a shell already.
	if len(command) < 2 {
		return command
	}

	needsShell := variable().MatchString(command[0]) || slices.Contains(builtins, command[0])
	if !needsShell {
		return command
	}
	return []string{quoteShellWords(command)}
}

// cutBareCommand is [cutCommand] for a command that no dashes precede. Units can precede the command. at is
// the index of the word exec. The command begins with the first word that is not a unit. If no units are given,
// the first word counts as the unit, and the command begins after it. command is empty, and own is args, if no
// word is left for the command.
func cutBareCommand(args []string, at int) (own, command []string, err error) {
	// positions are the indexes in args[at:] of the words between exec and two dashes, without options and
	// their values.
	positions, err := ownCommand().Words(args[at:])
	if err != nil {
		return args, nil, err
	}
	firstNonUnit := slices.IndexFunc(positions, func(position int) bool { return !isUnitWord(args[at+position]) })
	if firstNonUnit < 0 {
		return args, nil, nil
	}

	begins := at + positions[firstNonUnit]
	hasUnits := firstNonUnit > 0 || slices.ContainsFunc(args[at:begins], namesUnits)
	if hasUnits {
		return args[:begins], args[begins:], nil
	}

	// The command line names no units, so its first word, at begins, counts as one. listUnits accepts a pod's
	// name there, and refuses any other word. The command begins with the next word. If that is an option of
	// juju, which has two dashes, the command begins with the next word that is not an option.
	next := begins + 1
	if next == len(args) {
		return args, nil, nil
	}
	if strings.HasPrefix(args[next], "--") {
		if len(positions) == 1 {
			return args, nil, nil
		}
		next = at + positions[1]
	}
	return args[:next], args[next:], nil
}

// namesUnits reports whether the word is an option of juju exec that selects units or machines.
func namesUnits(word string) bool {
	option, _, _ := strings.Cut(word, "=")
	return slices.Contains([]string{
		"-u", "--unit", "-a", "--app", "--application", "--service", "--all", "--machine",
	}, option)
}

package juju

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"bijou/multicall/console"
)

// cutCommand separates the command of `juju exec` and `juju run` from the arguments, so that none of its
// words counts as an option of juju. The command begins after two dashes. For exec without dashes it begins
// with the first word that is not a unit.
func cutCommand(args []string) (own, command []string, err error) {
	at := commandAt(args)
	if at == len(args) || args[0] == console.CompleteOption || args[at] != "run" && args[at] != "exec" {
		return args, nil, nil
	}

	args = withoutBareWait(args)
	// A call with these options is compose's run, which runs a command.
	if _, s := cutSurroundings(args, at); !s.isEmpty() {
		args = slices.Clone(args)
		args[at] = "exec"
	}

	own = args
	if args[at] == "exec" {
		own, command, err = cutBareCommand(args, at)
	}
	if dashes := slices.Index(args, "--"); len(command) == 0 && dashes >= 0 {
		own = args[:dashes]
		command = args[dashes+1:]
	}

	own, s := cutSurroundings(own, at)
	return own, s.around(command), err
}

// withoutBareWait drops Juju 2's --wait without a time, since both commands always wait.
func withoutBareWait(args []string) (kept []string) {
	for i, word := range args {
		if word == "--" {
			return append(kept, args[i:]...)
		}
		if bare := i+1 == len(args) || strings.HasPrefix(args[i+1], "-"); word != "--wait" || !bare {
			kept = append(kept, word)
		}
	}

	return kept
}

// variable matches the value of compose's -e NAME=VALUE. The name of an environment never matches.
var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_]\w*=`) })

// surroundings are the variables and the directory that options of compose's exec and run set for a command.
type surroundings struct {
	variables []string
	directory string // empty for the charm's directory
}

func (s surroundings) isEmpty() bool { return len(s.variables) == 0 && s.directory == "" }

// cutSurroundings removes the options that set a command's variables and directory from the arguments in
// front of two dashes. own are the other arguments.
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
			s.variables = append(s.variables, value)
		case i > at && (option == "--workdir" || option == "-w") && value != "":
			s.directory = value
		default:
			own = append(own, args[i])
			continue
		}
		if !joined {
			i++
		}
	}

	return own, s
}

// around returns a command that runs the given command with the variables and directory. A command of one word
// is a line for a shell.
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

// asShellRuns returns the words as a line for a shell if the first word is not a program, such as exit or
// NAME=VALUE. Juju gives all commands to a shell.
func asShellRuns(command []string) []string {
	builtins := []string{
		".", "alias", "cd", "command", "declare", "eval", "exec", "exit", "export", "hash", "local", "readonly", "return", "set",
		"shift", "shopt", "source", "trap", "type", "ulimit", "umask", "unset", "wait",
	}
	if len(command) < 2 || !variable().MatchString(command[0]) && !slices.Contains(builtins, command[0]) {
		return command
	}
	return []string{quoteShellWords(command)}
}

// cutBareCommand is like cutCommand, for a command that no dashes precede. Units can precede the command. It
// returns no command if all words are units.
func cutBareCommand(args []string, at int) (own, command []string, err error) {
	words, err := ownCommand().Words(args[at:])
	i := slices.IndexFunc(words, func(i int) bool { return !isUnitWord(args[at+i]) })
	if i < 0 || err != nil {
		return args, nil, err
	}

	begins := at + words[i]
	if i > 0 || slices.ContainsFunc(args[at:begins], namesUnits) {
		return args[:begins], args[begins:], nil
	}

	// The first word always counts as a unit. After it, juju's own options begin with two dashes.
	next := begins + 1
	switch {
	case next == len(args):
		return args, nil, nil
	case strings.HasPrefix(args[next], "--") && len(words) == 1:
		return args, nil, nil
	case strings.HasPrefix(args[next], "--"):
		next = at + words[1]
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

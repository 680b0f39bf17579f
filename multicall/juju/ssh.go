package juju

import (
	"errors"
	"os"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
)

// containerFlags are for programs that were written for Juju, whose charms can run in containers on
// Kubernetes.
type containerFlags struct {
	Container string `hidden:"" enum:",charm" default:"" help:"Where the charm is: on its unit's machine."`
}

type sshCmd struct {
	containerFlags
	Forward []string `hidden:"" sep:"none" aliases:"L,R,D,W,w"`
	Target  string   `arg:"" help:"A unit (APPLICATION/leader is the leader), or a machine's number."`
	Command []string `arg:"" optional:"" passthrough:"partial" help:"The command to run there; default: a shell."`
}

// Run opens a shell on the target's machine, or runs the command there. The exit code becomes juju's own. The
// shell or command gets a terminal if stdin and stdout are terminals.
func (c sshCmd) Run(o *operator) error {
	command, err := c.splitCommand(o)
	if err != nil {
		return err
	}

	// The target can also be USER@UNIT, as for ssh, or the name of a pod, as for kubectl.
	target := unitOfPod(o.cutUser(c.Target))
	to, err := o.findMachineFolder(target)
	if err != nil {
		return hintTarget(target, err)
	}

	// The options of ssh can end with a further "--".
	line := strings.Join(trimDashes(command), " ")
	in, ok := o.streams.In.(*os.File)
	interactive := ok && console.IsTerminal(in) && console.IsTerminal(o.streams.Out)
	return o.runForeground(to.Run(to.dir, line, interactive))
}

// sshValueOptions are the letters of ssh(1)'s options that take a value.
const sshValueOptions = "BbcDEeFIiJLlmOoPpQRSWw"

// splitCommand returns the command without options of the program ssh in front of it, and prints that these
// options have no effect. It returns an error for options that forward ports.
func (c sshCmd) splitCommand(o *operator) (command []string, err error) {
	options, command := cutOptions(trimDashes(c.Command), sshValueOptions)
	forwards := slices.ContainsFunc(options, func(option []string) bool {
		return slices.Contains([]string{"-L", "-R", "-D", "-W", "-w"}, option[0])
	})
	if forwards || len(c.Forward) > 0 {
		return nil, console.Hint(
			console.Usage(errors.New("cannot forward ports: the provider decides how to reach its machines")),
			"to see a unit's address and ports: juju show-unit "+quoteShellWords([]string{c.Target}),
		)
	}

	o.noteOptions(options)
	return command, nil
}

// cutOptions splits words into the options at the front and the rest. It returns each option as one word, such as
// "-r" or "--quiet", followed by its value if it has one. valueLetters are the letters of options that take a
// value. An option with two dashes never takes the next word as its value.
func cutOptions(words []string, valueLetters string) (options [][]string, rest []string) {
	isOption := func(word string) bool { return len(word) > 1 && word[0] == '-' && word != "--" }
	for len(words) > 0 && isOption(words[0]) {
		// One word can contain several options, such as -rq.
		bundle := words[0][1:]
		words = words[1:]
		if strings.HasPrefix(bundle, "-") {
			options = append(options, []string{"-" + bundle})
			continue
		}

		// The first letter with a value takes the rest of the word, or the next word.
		flags := bundle
		value := ""
		at := strings.IndexAny(bundle, valueLetters)
		if at >= 0 {
			flags = bundle[:at]
			value = bundle[at+1:]
		}

		for _, letter := range flags {
			options = append(options, []string{"-" + string(letter)})
		}
		if at < 0 {
			continue
		}

		option := []string{"-" + bundle[at:at+1]}
		switch {
		case value != "":
			option = append(option, value)
		case len(words) > 0:
			option = append(option, words[0])
			words = words[1:]
		}
		options = append(options, option)
	}

	return options, words
}

// noteOptions prints the options of ssh or scp that have no effect with this provider.
func (o *operator) noteOptions(options [][]string) {
	if len(options) > 0 {
		o.note("note: %s has no effect: the provider decides how to reach its machines",
			quoteShellWords(slices.Concat(options...)))
	}
}

// cutUser returns UNIT for USER@UNIT, and prints that the user has no effect. It returns any other word
// unchanged.
func (o *operator) cutUser(word string) string {
	user, target, hasUser := strings.Cut(word, "@")
	if !hasUser {
		return word
	}

	o.note("note: %s@ has no effect: the provider decides the user on its machines", user)
	return target
}

// hintTarget adds a hint that names the leader's unit if target was not found, and contains no slash or digit. It
// returns any other error unchanged.
func hintTarget(target string, err error) error {
	// The name of a unit has a slash, and the id of a machine has digits. An application whose name has digits gets
	// no hint.
	if !errors.Is(err, state.ErrNotFound) || strings.ContainsAny(target, "/0123456789") {
		return err
	}
	return console.Hint(err, "for an application's units: juju ssh "+quoteShellWords([]string{target})+"/leader")
}

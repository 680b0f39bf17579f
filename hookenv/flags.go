package hookenv

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FlagSet holds the options of one tool. docs/reference/hook-tools.md describes their grammar.
type FlagSet struct {
	options       []option
	args          []string // the arguments that are not options, after parsing
	clientID      string   // the value of --client-id, which every tool accepts; the client has already used it
	AcceptUnknown bool     // accept unknown options as arguments
	Format        string   // the output format; before parsing, the tool's default; empty if the format depends on the value
}

// option is one option of a tool.
type option struct {
	names []string // without dashes: a single letter is -x, a longer name is --xyz
	arg   string   // the placeholder for the option's value in the help, or empty for a boolean
	help  string   // its line in the help; an option without a line is not shown
	set   func(name, value string) error
}

// newFlagSet returns a set with the options that every tool accepts for the client, --client-id and --socket.
func newFlagSet() *FlagSet {
	f := &FlagSet{}
	f.AddString(&f.clientID, "", "ID", "client-id", "client_id")
	f.AddString(new(string), "", "PATH", "socket") // the client has already used the value
	return f
}

// AddString declares an option with a value. If the option is given several times, the last value counts.
// Names have no dashes: a single letter is -x, and a longer name is --xyz. help is the option's line in
// --help, where arg stands for the value. An option without help is not shown there.
func (f *FlagSet) AddString(to *string, help, arg string, names ...string) {
	f.add(option{
		names: names,
		arg:   arg,
		help:  help,
		set: func(_, value string) error {
			*to = value
			return nil
		},
	})
}

// AddBool declares an option without a value. A caller can also set it with --xyz=true or --xyz=false.
func (f *FlagSet) AddBool(to *bool, help string, names ...string) {
	f.add(option{
		names: names,
		help:  help,
		set: func(name, value string) error {
			b, err := strconv.ParseBool(value)
			if err != nil {
				return UsageErrorf("invalid value %q for option %s: expected true or false", value, name)
			}
			*to = b
			return nil
		},
	})
}

// AddChoice declares an option whose value must be one of the words. Any other value is a usage error.
func (f *FlagSet) AddChoice(to *string, help, name string, words ...string) {
	f.add(option{
		names: []string{name},
		arg:   strings.Join(words, "|"),
		help:  help,
		set: func(name, value string) error {
			if !slices.Contains(words, value) {
				return UsageErrorf("invalid value %q for option %s: expected one of %s", value, name,
					strings.Join(words, ", "))
			}
			*to = value
			return nil
		},
	})
}

// AddFunc declares an option that calls set for each of its values, with the option's name as it was typed.
// An error of set ends parsing.
func (f *FlagSet) AddFunc(set func(name, value string) error, help, arg string, names ...string) {
	f.add(option{names: names, arg: arg, help: help, set: set})
}

func (f *FlagSet) add(opt option) {
	f.options = append(f.options, opt)
}

// findOption returns the option with this name, or false if the tool does not have it. name has no dashes.
func (f *FlagSet) findOption(name string) (option, bool) {
	i := slices.IndexFunc(f.options, func(o option) bool { return slices.Contains(o.names, name) })
	if i < 0 {
		return option{}, false
	}
	return f.options[i], true
}

// parse parses argv, which does not contain the tool's name. It calls the set function of each option, and appends all
// other arguments to f.args. Options can be anywhere before "--". It stops at the first error. For the help option the
// error is errHelp.
func (f *FlagSet) parse(argv []string) error {
	for len(argv) > 0 {
		arg := argv[0]
		argv = argv[1:]
		if arg == "--" {
			f.args = append(f.args, argv...)
			return nil
		}
		if len(arg) < 2 || arg[0] != '-' { // "-" alone, which stands for stdin, is also an argument
			f.args = append(f.args, arg)
			continue
		}

		parseOption := f.parseShort
		if strings.HasPrefix(arg, "--") {
			parseOption = f.parseLong
		}
		var err error
		if argv, err = parseOption(arg, argv); err != nil {
			return err
		}
	}

	return nil
}

// parseLong parses the long option arg, such as "--xyz" or "--xyz=v". argv has the arguments after arg, the first of
// which can be the option's value. It returns the arguments after the value. For an option that the
// tool does not have, it returns argv unchanged.
func (f *FlagSet) parseLong(arg string, argv []string) ([]string, error) {
	name, value, hasValue := strings.Cut(arg[2:], "=")
	opt, ok := f.findOption(name)
	switch {
	case !ok:
		return argv, f.resolveUnknown(name, arg)
	case hasValue:
		return argv, opt.set(withDashes(name), value)
	}

	return f.takeValue(opt, name, argv)
}

// parseShort parses the argument arg with short options: "-f v", "-fv", "-f=v", or combined booleans such as "-ab". argv
// has the arguments after arg, the first of which can be the option's value. It returns the arguments after the value.
// It stops at a letter that the tool does not have, after it has set the options before that letter.
func (f *FlagSet) parseShort(arg string, argv []string) ([]string, error) {
	for letters := arg[1:]; letters != ""; {
		_, size := utf8.DecodeRuneInString(letters)
		name := letters[:size]
		letters = letters[size:]
		opt, ok := f.findOption(name)
		switch {
		case !ok:
			return argv, f.resolveUnknown(name, arg)
		case strings.HasPrefix(letters, "="):
			return argv, opt.set(withDashes(name), letters[1:])
		case opt.arg != "" && letters != "":
			return argv, opt.set(withDashes(name), letters) // the value follows the letter directly
		}

		var err error
		if argv, err = f.takeValue(opt, name, argv); err != nil {
			return nil, err
		}
	}

	return argv, nil
}

// takeValue sets an option to the first argument of argv, or to true if the option takes no value. It returns the
// remaining arguments. It returns a usage error if the option's value is missing.
func (f *FlagSet) takeValue(opt option, name string, argv []string) ([]string, error) {
	switch {
	case opt.arg == "":
		return argv, opt.set(withDashes(name), "true")
	case len(argv) == 0:
		return nil, UsageErrorf("option needs an argument: %s", withDashes(name))
	}

	return argv[1:], opt.set(withDashes(name), argv[0])
}

// resolveUnknown handles an option that the tool does not have. It returns errHelp for the help option. If the tool
// accepts unknown options, it adds arg to f.args. Otherwise it returns a usage error.
func (f *FlagSet) resolveUnknown(name, arg string) error {
	switch {
	case name == "help" || name == "h":
		return errHelp
	case f.AcceptUnknown:
		f.args = append(f.args, arg)
		return nil
	case name == "":
		return UsageErrorf("empty option in argument %q", arg)
	}

	return UsageErrorf(unknownOption+"%s", withDashes(name))
}

// unknownOption is the beginning of the error for an unknown option.
const unknownOption = "option provided but not defined: "

// withDashes returns an option's name as error messages show it, with one or two dashes.
func withDashes(name string) string {
	if len(name) > 1 {
		return "--" + name
	}
	return "-" + name
}

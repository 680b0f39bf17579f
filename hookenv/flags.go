package hookenv

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FlagSet holds the options of one tool; docs/reference/hook-tools.md describes their grammar.
type FlagSet struct {
	options       []option
	args          []string // positionals, once parsed
	clientID      string   // of every tool; the client has read it already
	AcceptUnknown bool     // as arguments
	Format        string   // the output format, or before parsing the default; empty: the value's own
}

type option struct {
	names []string // without dashes; one letter means -x, else --xyz
	arg   string   // what its value is called in help; empty for a boolean
	help  string   // empty: not shown
	set   func(name, value string) error
}

func newFlagSet() *FlagSet {
	f := &FlagSet{}
	f.AddString(&f.clientID, "", "ID", "client-id", "client_id")
	f.AddString(new(string), "", "PATH", "socket")
	return f
}

// AddString declares an option with a value; the last value wins. Names have no dashes: one letter is -x,
// longer ones are --xyz. help is the option's line in --help, where arg stands for the value. An option
// without help is not shown there.
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

// AddBool declares an option without a value. It may have a boolean behind "=".
func (f *FlagSet) AddBool(to *bool, help string, names ...string) {
	f.add(option{
		names: names,
		help:  help,
		set: func(name, value string) error {
			b, err := strconv.ParseBool(value)
			if err != nil {
				return UsageErrorf("invalid value %q for option %s: %v", value, name, err)
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

func (f *FlagSet) add(o option) {
	f.options = append(f.options, o)
}

func (f *FlagSet) findOption(name string) (option, bool) {
	i := slices.IndexFunc(f.options, func(o option) bool { return slices.Contains(o.names, name) })
	if i < 0 {
		return option{}, false
	}
	return f.options[i], true
}

// parse takes options from anywhere in argv, the tool's name left out, up to "--", and leaves the
// rest in f.args.
func (f *FlagSet) parse(argv []string) error {
	for len(argv) > 0 {
		arg := argv[0]
		argv = argv[1:]
		if arg == "--" {
			f.args = append(f.args, argv...)
			return nil
		}
		if len(arg) < 2 || arg[0] != '-' {
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

// parseLong parses the long option arg. It returns the rest of argv behind the option and its value.
func (f *FlagSet) parseLong(arg string, argv []string) ([]string, error) {
	name, value, joined := strings.Cut(arg[2:], "=")
	o, ok := f.findOption(name)
	switch {
	case !ok:
		return argv, f.resolveUnknown(name, arg)
	case joined:
		return argv, o.set(withDashes(name), value)
	}

	return f.takeValue(o, name, argv)
}

// parseShort parses "-f v", "-fv", "-f=v" and booleans run together, "-ab".
func (f *FlagSet) parseShort(arg string, argv []string) ([]string, error) {
	for letters := arg[1:]; letters != ""; {
		_, size := utf8.DecodeRuneInString(letters)
		name := letters[:size]
		letters = letters[size:]
		o, ok := f.findOption(name)
		switch {
		case !ok:
			return argv, f.resolveUnknown(name, arg)
		case strings.HasPrefix(letters, "="):
			return argv, o.set(withDashes(name), letters[1:])
		case o.arg != "" && letters != "":
			return argv, o.set(withDashes(name), letters)
		}

		var err error
		if argv, err = f.takeValue(o, name, argv); err != nil {
			return nil, err
		}
	}

	return argv, nil
}

// takeValue sets an option to the next argument, or to true if it takes none. It returns the rest.
func (f *FlagSet) takeValue(o option, name string, argv []string) ([]string, error) {
	switch {
	case o.arg == "":
		return argv, o.set(withDashes(name), "true")
	case len(argv) == 0:
		return nil, UsageErrorf("option needs an argument: %s", withDashes(name))
	}

	return argv[1:], o.set(withDashes(name), argv[0])
}

// resolveUnknown decides about an option that the tool does not have.
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

// unknownOption begins the error about an option that a tool has not.
const unknownOption = "option provided but not defined: "

// withDashes returns the form in which error messages name an option, however it was typed.
func withDashes(name string) string {
	if len(name) > 1 {
		return "--" + name
	}
	return "-" + name
}

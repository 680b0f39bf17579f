package console

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Unneeded are options that commands accept although they have no effect. Each given option prints a note on
// stderr. A command's own option of the same name takes precedence.
type Unneeded struct {
	Commands string // the commands' names, separated by spaces, or "*" for all
	Options  string // the options without dashes, separated by spaces; an option that ends in "=" takes a value
	Why      string // the reason in the note, or "" for no note, if the option only requests the usual behaviour
}

// addUnneeded adds the unneeded options to each command. They are not in the help, and shells do not complete them.
func (c Command) addUnneeded(parser *kong.Kong) error {
	for _, node := range parser.Model.Children {
		fields := c.unneededFields(node)
		if len(fields) == 0 {
			continue
		}

		// kong makes options only from the fields of a struct.
		grammar := reflect.New(reflect.StructOf(fields)).Interface()
		options, err := kong.New(grammar, kong.NoDefaultHelp())
		if err != nil {
			return err
		}
		node.Flags = append(node.Flags, options.Model.Flags...)
	}

	return nil
}

// unneededFields returns a field of a struct for each unneeded option of a command. It leaves out options that the
// command has itself.
func (c Command) unneededFields(node *kong.Node) (fields []reflect.StructField) {
	taken := flagNames(node)
	for _, u := range c.Unneeded {
		isForCommand := u.Commands == "*" || slices.Contains(strings.Fields(u.Commands), node.Name)
		if !isForCommand {
			continue
		}

		for _, option := range strings.Fields(u.Options) {
			name, takesValue := strings.CutSuffix(option, "=")
			if taken[name] {
				continue
			}
			taken[name] = true
			fields = append(fields, unneededField(len(fields), name, takesValue, u.Why))
		}
	}

	return fields
}

// unneededMark is the group of unneeded options, which distinguishes them after a parse.
const unneededMark = "unneeded"

// unneededField returns the n-th field of a struct, with the tags that make kong accept the option called name. why is
// the reason in the note that the user gets about the option. kong keeps it as the option's help.
func unneededField(n int, name string, takesValue bool, why string) reflect.StructField {
	isLetter := len(name) == 1
	long := name
	if isLetter {
		// kong would suggest a long name of one letter for a mistyped option.
		long = unneededMark + "-" + name
	}

	// Without a separator, kong does not split the option's value at commas.
	tag := fmt.Sprintf(`name:%q hidden:"" sep:"none" group:%q help:%q`, long, unneededMark, why)
	if isLetter {
		tag += fmt.Sprintf(` short:%q`, name)
	}

	field := reflect.StructField{
		Name: fmt.Sprintf("Option%d", n),
		Type: reflect.TypeFor[bool](),
		Tag:  reflect.StructTag(tag),
	}
	if takesValue {
		field.Type = reflect.TypeFor[[]string]() // so that the option can be given several times
	}
	return field
}

// flagNames returns the names, aliases and letters of the options of a command and its parents, with hidden ones.
func flagNames(node *kong.Node) map[string]bool {
	names := map[string]bool{}
	const withoutHidden = false
	for _, f := range slices.Concat(node.AllFlags(withoutHidden)...) {
		names[f.Name] = true
		for _, alias := range f.Aliases {
			names[alias] = true
		}
		if f.Short != 0 {
			names[string(f.Short)] = true
		}
	}

	return names
}

// noteUnneeded prints a note for each unneeded option that was given, unless the option has no reason for the note.
// It prints each note only once.
func noteUnneeded(w io.Writer, parsed *kong.Context) {
	noted := map[*kong.Flag]bool{}
	for _, element := range parsed.Path {
		f := element.Flag
		if f == nil || f.Group == nil || f.Group.Key != unneededMark {
			continue
		}
		if noted[f] || f.Help == "" {
			continue
		}

		noted[f] = true
		given := "--" + f.Name
		if f.Short != 0 {
			given = "-" + string(f.Short)
		}
		fmt.Fprintf(w, "note: %s has no effect: %s\n", given, f.Help)
	}
}

// Words returns the indexes of the args after the command at args[0] that are neither options nor values of
// options. It stops at two dashes. An option that the command does not know takes no value. If args[0] is not a
// command, it returns none.
func (c Command) Words(args []string) (indexes []int, err error) {
	parser, err := c.newParser(args)
	if err != nil {
		return nil, err
	}
	// If args[0] is not a command, the parser knows all commands instead of only that one.
	if len(parser.Model.Children) != 1 {
		return nil, nil
	}

	const withoutHidden = false
	takesValue := map[string]bool{}
	for _, f := range slices.Concat(parser.Model.Children[0].AllFlags(withoutHidden)...) {
		names := append([]string{f.Name}, f.Aliases...)
		for _, name := range names {
			takesValue["--"+name] = !f.IsBool()
		}
		if f.Short != 0 {
			takesValue["-"+string(f.Short)] = !f.IsBool()
		}
	}

	for i := 1; i < len(args) && args[i] != "--"; i++ {
		arg := args[i]
		isOption := len(arg) >= 2 && arg[0] == '-'
		if !isOption {
			indexes = append(indexes, i)
			continue
		}

		// takesValue does not contain --option=value, which already has its value.
		wantsNext := takesValue[arg]
		if !strings.HasPrefix(arg, "--") {
			wantsNext = lettersWantValue(arg[1:], takesValue)
		}
		if wantsNext {
			i++ // skip the option's value
		}
	}

	return indexes, nil
}

// lettersWantValue reports whether the next argument is the value of the last of the letters after a single
// dash. If an earlier letter takes a value, that value is the rest of the letters.
func lettersWantValue(letters string, takesValue map[string]bool) bool {
	for i, letter := range letters {
		if takesValue["-"+string(letter)] {
			return i == len(letters)-1
		}
	}
	return false
}

package tools

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"bijou/hookenv"
	"bijou/hookenv/client/wire"
	"bijou/hookenv/hookapi"
)

// prepareRelationSet declares the options of relation-set, which changes settings in a relation.
func prepareRelationSet(f *hookenv.FlagSet) hookenv.Runner {
	s := &relationSetter{}
	s.relationFlag.addFlags(f)
	f.AddBool(&s.app, "change the settings of the application, not of the unit", "app")
	f.AddString(&s.file, "read settings from a YAML or JSON file; - is stdin", "FILE", "file")
	f.AddString(&s.format, "accepted and ignored", "FORMAT", "format")
	return s.run
}

// relationSetter is one call of relation-set.
type relationSetter struct {
	relationFlag
	app          bool
	file, format string
}

// run changes the settings. Before that it checks the whole call: the relation, the unit, the arguments and the files.
func (s *relationSetter) run(ctx context.Context, inv *hookenv.Invocation) error {
	if err := s.checkRelation(ctx, inv); err != nil {
		return err
	}
	unit, err := s.takeUnit(inv) // removes the unit from inv.Args, which classifyArguments reads
	if err != nil {
		return err
	}

	given, err := classifyArguments(inv)
	if err != nil {
		return err
	}
	id, err := s.resolveRelation(ctx, inv, unit)
	if err != nil {
		return err
	}

	inv.DeprecateFormat(s.format)
	changes, err := s.readSettings(ctx, inv, given)
	if err != nil {
		return err
	}

	if s.app {
		if err := checkServiceWrite(ctx, inv); err != nil {
			return err
		}
	}

	return s.write(ctx, inv, nodeAddress(id, cmp.Or(unit, inv.Facts.Unit), s.app), changes)
}

// write changes the settings of the node. Without changes, it only returns the errors of hookapi about the node, and
// does not refuse a broken relation.
func (s *relationSetter) write(
	ctx context.Context,
	inv *hookenv.Invocation,
	node hookapi.Node,
	changes map[string]*string,
) error {
	if len(changes) == 0 {
		err := inv.Hook.SetSettings(ctx, node, nil)
		name := node.Unit + node.Service // one of them is empty
		return s.rewordNotFound(inv, rewordUnknown(err, name))
	}

	err := writeNode(ctx, inv.Hook, node, changes)
	return s.rewordNotFound(inv, err)
}

// checkServiceWrite returns an error if the hook's unit does not lead its service. It returns nil for an operator, who
// can write the settings of any service.
func checkServiceWrite(ctx context.Context, inv *hookenv.Invocation) error {
	if inv.Facts.Unit == "" || inv.Facts.Operator {
		return nil
	}

	leads, err := inv.Hook.IsLeader(ctx)
	if err != nil {
		return err
	}
	if !leads {
		return errNotLeader
	}

	return nil
}

// takeUnit removes the last argument and returns it, if it is the name of a unit. Otherwise it returns an empty
// string, which stands for the local unit. It returns an error if the hook cannot change the settings of the
// named unit, or if no unit is named and there is no local unit.
func (s *relationSetter) takeUnit(inv *hookenv.Invocation) (string, error) {
	last := len(inv.Args) - 1
	if last < 0 || !isUnit(inv.Args[last]) {
		return "", inv.RequireUnitArgument()
	}

	unit := inv.Args[last]
	inv.Args = inv.Args[:last]
	return unit, checkUnitWrite(inv.Facts, unit)
}

// settingArguments are the arguments of relation-set, grouped by their form.
type settingArguments struct {
	pairs   [][2]string // KEY=VALUE; each key occurs once
	touched []string    // KEY
	files   []string    // "-" and @FILE
}

// classifyArguments sorts the arguments by their form. It skips empty arguments, which result from unset variables in
// scripts. Only the classic dialect has @FILE, and keys without a value.
func classifyArguments(inv *hookenv.Invocation) (settingArguments, error) {
	var a settingArguments

	for _, arg := range inv.Args {
		key, value, isPair := strings.Cut(arg, "=")
		switch {
		case arg == "":
			// An empty argument changes nothing.
		case arg == "-":
			a.files = append(a.files, "-")
		case !inv.IsModern() && len(arg) > 1 && arg[0] == '@':
			a.files = append(a.files, arg[1:])
		case isPair && slices.ContainsFunc(a.pairs, func(pair [2]string) bool { return pair[0] == key }):
			return a, hookenv.UsageErrorf("key %q specified more than once", key)
		case isPair && key != "":
			a.pairs = append(a.pairs, [2]string{key, value})
		case !isPair && !inv.IsModern():
			a.touched = append(a.touched, arg)
		default:
			return a, hookenv.UsageErrorf(`expected "key=value", got %q`, arg)
		}
	}

	return a, nil
}

// readSettings returns the changes of settings in the files and the arguments. Arguments win over files, and
// later files over earlier ones. The file of --file is the first. Without files and arguments it reads stdin,
// if stdin is a pipe or a file.
func (s *relationSetter) readSettings(
	ctx context.Context,
	inv *hookenv.Invocation,
	given settingArguments,
) (map[string]*string, error) {
	files := given.files
	if s.file != "" {
		files = append([]string{s.file}, files...)
	}
	if len(files) == 0 && isReadUnasked(inv.Stdin) {
		files = defaultFiles(inv, given)
	}

	changes := map[string]*string{}
	for _, path := range files {
		data, err := inv.Files.Read(ctx, path)
		if err != nil {
			return nil, err
		}
		parsed, err := hookenv.ParseDictionary(data)
		if err != nil {
			return nil, err
		}
		maps.Copy(changes, parsed)
	}

	return changes, addArguments(ctx, inv, given, changes)
}

// defaultFiles returns the files to read if the call names none. For a call without arguments, this is stdin. For a call
// with arguments it returns nil. It then logs that stdin is not read, unless an argument of the form KEY=@- reads stdin,
// or there is no local unit.
func defaultFiles(inv *hookenv.Invocation, given settingArguments) []string {
	if len(given.pairs)+len(given.touched) == 0 {
		return []string{"-"}
	}

	readsStdin := slices.ContainsFunc(given.pairs, func(pair [2]string) bool {
		return pair[1] == "@-" && !inv.IsModern()
	})
	if inv.Facts.Unit != "" && !readsStdin { // without a local unit, there is no unit's log
		inv.WriteLog("DEBUG", "relation-set: KEY=VALUE is given, so stdin is not read; add - to read it too")
	}
	return nil
}

// isReadUnasked reports whether relation-set reads this kind of stdin if it has no arguments. Reading a terminal or a
// socket could wait forever.
func isReadUnasked(kind string) bool { return kind == wire.StdinFIFO || kind == wire.StdinFile }

// addArguments adds the arguments to the changes. A key without a value gets the current time as its value,
// so that the setting always changes.
func addArguments(
	ctx context.Context,
	inv *hookenv.Invocation,
	given settingArguments,
	changes map[string]*string,
) error {
	const remove = false // an empty value still deletes its key
	for _, key := range given.touched {
		now := inv.Now().UTC().Format("2006-01-02T15:04:05.000000000Z")
		if err := hookenv.AddChange(changes, key, now, remove); err != nil {
			return err
		}
	}

	for _, pair := range given.pairs {
		value, err := readPairValue(ctx, inv, pair[1])
		if err != nil {
			return err
		}
		if err := hookenv.AddChange(changes, pair[0], value, remove); err != nil {
			return err
		}
	}

	return nil
}

// readPairValue returns the value of a pair. In the classic dialect a value of the form @FILE stands for the content of
// that file.
func readPairValue(ctx context.Context, inv *hookenv.Invocation, value string) (string, error) {
	if inv.IsModern() || len(value) < 2 || value[0] != '@' {
		return value, nil
	}
	data, err := inv.Files.Read(ctx, value[1:])
	return string(data), err
}

package hookenv

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"bijou/hookenv/client"
)

func relationSet() Tool {
	return Tool{
		Name:    "relation-set",
		Summary: "change settings of a relation",
		Usage:   "[-r VALUE] [--app] [--file FILE|-] [KEY=VALUE]... [-] [UNIT_NAME]",
		Notes: "KEY= deletes a key. A file, or stdin for -, holds a YAML or JSON dictionary, in which null\n" +
			"deletes; KEY=VALUE wins over it. Without a file, KEY or KEY=VALUE a pipe or file on stdin is read as\n" +
			"well; beside them only with -. Others see the changes once the hook has succeeded.\n" +
			"Charms of the classic dialect may also say KEY (set it to the current time), KEY=@FILE, @FILE.",
		Examples: []string{
			"relation-set user=root password=s3cr3t",
			"relation-set -r db:0 --file settings.yaml",
			"echo 'host: 10.0.0.1' | relation-set --file -",
		},
		prepare: func(f *flagSet) runner {
			s := &relationSetter{}
			s.relationFlag.addFlags(f)
			f.addBool(&s.app, "change the settings of the service, not of the unit", "app")
			f.addString(&s.file, "read settings from a YAML or JSON file; - is stdin", "FILE", "file")
			f.addString(&s.format, "accepted and ignored", "FORMAT", "format")
			return s.run
		},
	}
}

type relationSetter struct {
	relationFlag
	app          bool
	file, format string
}

func (s *relationSetter) run(ctx context.Context, inv *invocation) error {
	if err := s.checkRelation(ctx, inv); err != nil {
		return err
	}
	unit, err := s.takeUnit(inv)
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
	inv.deprecateFormat(s.format)
	changes, err := s.readChanges(ctx, inv, given)
	if err != nil {
		return err
	}
	if s.app {
		if err := checkServiceWrite(ctx, inv); err != nil {
			return err
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return writeNode(ctx, inv.hook, nodeAddress(id, cmp.Or(unit, inv.facts.Unit), s.app), changes)
}

// An operator may write any service's settings.
func checkServiceWrite(ctx context.Context, inv *invocation) error {
	if inv.facts.Unit == "" || inv.facts.Operator {
		return nil
	}
	leads, err := inv.hook.IsLeader(ctx)
	if err == nil && !leads {
		err = errNotLeader
	}
	return err
}

// The UNIT_NAME is the last argument, if that is a unit's name.
func (s *relationSetter) takeUnit(inv *invocation) (string, error) {
	last := len(inv.args) - 1
	if last < 0 || !isUnit(inv.args[last]) {
		return "", inv.requireUnitName()
	}
	unit := inv.args[last]
	inv.args = inv.args[:last]
	return unit, checkUnitWrite(inv.facts, unit)
}

type settingArguments struct {
	pairs   [][2]string // KEY=VALUE, no KEY twice
	touched []string    // KEY
	files   []string    // "-" and @FILE
}

// Empty arguments are skipped: scripts make them of unset variables.
func classifyArguments(inv *invocation) (settingArguments, error) {
	var a settingArguments
	for _, arg := range inv.args {
		key, value, isPair := strings.Cut(arg, "=")
		switch {
		case arg == "":
		case arg == "-":
			a.files = append(a.files, "-")
		case !inv.isModern() && len(arg) > 1 && arg[0] == '@':
			a.files = append(a.files, arg[1:])
		case isPair && slices.ContainsFunc(a.pairs, func(pair [2]string) bool { return pair[0] == key }):
			return a, usagef("key %q specified more than once", key)
		case isPair && key != "":
			a.pairs = append(a.pairs, [2]string{key, value})
		case !isPair && !inv.isModern():
			a.touched = append(a.touched, arg)
		default:
			return a, usagef(`expected "key=value", got %q`, arg)
		}
	}
	return a, nil
}

// Arguments win over files.
func (s *relationSetter) readChanges(ctx context.Context, inv *invocation, given settingArguments) (map[string]*string, error) {
	files := given.files
	if s.file != "" {
		files = append([]string{s.file}, files...)
	}
	if len(files) == 0 && isReadUnasked(inv.Stdin) {
		fromStdin := func(pair [2]string) bool { return pair[1] == "@-" && !inv.isModern() }
		switch {
		case len(given.pairs)+len(given.touched) == 0:
			files = []string{"-"}
		case inv.facts.Unit != "" && !slices.ContainsFunc(given.pairs, fromStdin):
			inv.writeLog("DEBUG", "relation-set: stdin is not read beside KEY=VALUE; say - to have it read")
		}
	}
	changes := map[string]*string{}
	for _, path := range files {
		data, err := inv.Files.Read(ctx, path)
		if err != nil {
			return nil, err
		}
		parsed, err := parseDictionary(data)
		if err != nil {
			return nil, err
		}
		maps.Copy(changes, parsed)
	}
	return changes, addArguments(ctx, inv, given, changes)
}

// Unasked, only that stdin is read which has an end and is no loop's input.
func isReadUnasked(kind string) bool { return kind == client.StdinFIFO || kind == client.StdinFile }

func addArguments(ctx context.Context, inv *invocation, given settingArguments, changes map[string]*string) error {
	for _, key := range given.touched {
		now := inv.Now().UTC().Format("2006-01-02T15:04:05.000000000Z")
		if err := addChange(changes, key, now, false); err != nil {
			return err
		}
	}
	for _, pair := range given.pairs {
		value, err := readPairValue(ctx, inv, pair[1])
		if err != nil {
			return err
		}
		if err := addChange(changes, pair[0], value, false); err != nil {
			return err
		}
	}
	return nil
}

// The classic dialect reads KEY=@FILE, byte for byte.
func readPairValue(ctx context.Context, inv *invocation, value string) (string, error) {
	if inv.isModern() || len(value) < 2 || value[0] != '@' {
		return value, nil
	}
	data, err := inv.Files.Read(ctx, value[1:])
	return string(data), err
}

package hookenv

import (
	"context"
)

func relationGet() Tool {
	return Tool{
		Name:    "relation-get",
		Summary: "print settings of a relation",
		Usage:   "[-r VALUE] [--app] [-|SETTING] [UNIT_NAME]",
		Notes: "Without SETTING, or for -, it prints all of them. UNIT_NAME defaults to the remote unit\n" +
			"of the relation that the hook is about. With --app it prints the service's own settings.",
		Examples: []string{
			"relation-get user",
			"relation-get --format=json - mysql/0",
			"relation-get -r db password mysql/0",
		},
		prepare: func(f *flagSet) runner {
			g := &relationGetter{}
			g.relationFlag.addFlags(f)
			f.addBool(&g.app, "print the settings of the service, not of a unit", "app")
			g.output.addFlag(f)
			return g.run
		},
	}
}

type relationGetter struct {
	relationFlag
	output
	app  bool
	key  string // empty: all
	name string // the unit or service named, if one was
}

func (g *relationGetter) run(ctx context.Context, inv *invocation) error {
	if err := g.parseArguments(ctx, inv); err != nil {
		return err
	}
	name := g.name
	id, err := g.resolveRelation(ctx, inv, name)
	if err != nil {
		return err
	}
	if name == "" {
		if name, err = g.defaultName(inv, id); err != nil {
			return err
		}
	}
	settings, err := readNode(ctx, inv.hook, nodeAddress(id, name, g.app))
	if err != nil {
		return err
	}
	return g.printSettings(inv, settings)
}

func (g *relationGetter) parseArguments(ctx context.Context, inv *invocation) error {
	if err := g.checkRelation(ctx, inv); err != nil {
		return err
	}
	if len(inv.args) > 0 && inv.args[0] != "-" {
		g.key = inv.args[0]
	}
	if len(inv.args) > 1 {
		g.name = inv.trimName(inv.args[1])
	}
	switch {
	case len(inv.args) < 2 || isUnit(g.name):
	case !isService(g.name):
		return usagef("invalid unit name %q", g.name)
	case !g.app:
		return usagef("expected unit name, got application name %q", g.name)
	}
	return inv.limitArgs(2)
}

func (g *relationGetter) defaultName(inv *invocation, id int) (string, error) {
	f := inv.facts
	switch {
	case id == f.Relation && g.app && f.RemoteService != "":
		return f.RemoteService, nil
	case id == f.Relation && f.RemoteUnit != "":
		return f.RemoteUnit, nil
	case f.Unit == "":
		return "", inv.requireUnitName()
	case inv.isModern():
		return "", usagef("no unit or application specified")
	case id == f.Relation && f.Broken:
		return "", errBrokenOthers
	}
	return f.Unit, nil
}

// A key that is not there is printed as null, or nothing.
func (g *relationGetter) printSettings(inv *invocation, settings map[string]string) error {
	if g.key == "" {
		return g.print(inv, settings)
	}
	if value, ok := settings[g.key]; ok {
		return g.print(inv, value)
	}
	return g.print(inv, nil)
}

package tools

import (
	"context"

	"bijou/hookenv"
)

func prepareRelationGet(f *hookenv.FlagSet) hookenv.Runner {
	g := &relationGetter{}
	g.relationFlag.addFlags(f)
	f.AddBool(&g.app, "print the settings of the service, not of a unit", "app")
	f.AddFormat()
	return g.run
}

type relationGetter struct {
	relationFlag
	app  bool
	key  string // empty: all
	name string // the unit or service named, if one was
}

func (g *relationGetter) run(ctx context.Context, inv *hookenv.Invocation) error {
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
	settings, err := readNode(ctx, inv.Hook, nodeAddress(id, name, g.app))
	if err != nil {
		return err
	}
	return g.printSettings(inv, settings)
}

func (g *relationGetter) parseArguments(ctx context.Context, inv *hookenv.Invocation) error {
	if err := g.checkRelation(ctx, inv); err != nil {
		return err
	}
	g.key, g.name = keyArgument(inv), inv.TrimName(inv.Arg(1))
	switch {
	case len(inv.Args) < 2 || isUnit(g.name):
	case !isService(g.name):
		return hookenv.UsageErrorf("invalid unit name %q", g.name)
	case !g.app:
		return hookenv.UsageErrorf("expected unit name, got application name %q", g.name)
	}
	return inv.LimitArgs(2)
}

func (g *relationGetter) defaultName(inv *hookenv.Invocation, id int) (string, error) {
	f := inv.Facts
	switch {
	case id == f.Relation && g.app && f.RemoteService != "":
		return f.RemoteService, nil
	case id == f.Relation && f.RemoteUnit != "":
		return f.RemoteUnit, nil
	case f.Unit == "":
		return "", inv.RequireUnitArgument()
	case inv.IsModern():
		return "", hookenv.UsageErrorf("no unit or application specified")
	case id == f.Relation && f.Broken:
		return "", errBrokenOthers
	}
	return f.Unit, nil
}

// A key that is not there is printed as null, or nothing.
func (g *relationGetter) printSettings(inv *hookenv.Invocation, settings map[string]string) error {
	if g.key == "" {
		return inv.Print(settings)
	}
	if value, ok := settings[g.key]; ok {
		return inv.Print(value)
	}
	return inv.Print(nil)
}

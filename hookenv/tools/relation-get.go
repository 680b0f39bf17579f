package tools

import (
	"context"

	"bijou/hookenv"
)

// prepareRelationGet declares the options of relation-get, which prints settings in a relation.
func prepareRelationGet(f *hookenv.FlagSet) hookenv.Runner {
	g := &relationGetter{}
	g.relationFlag.addFlags(f)
	f.AddBool(&g.app, "print the settings of the application, not of a unit", "app")
	f.AddFormat()
	return g.run
}

// relationGetter is one call of relation-get.
type relationGetter struct {
	relationFlag
	app  bool
	key  string // empty for all settings
	name string // the unit or service in the arguments, if any
}

// run prints the settings of a unit or application in the relation.
func (g *relationGetter) run(ctx context.Context, inv *hookenv.Invocation) error {
	if err := g.parseArguments(ctx, inv); err != nil {
		return err
	}

	id, err := g.resolveRelation(ctx, inv, g.name)
	if err != nil {
		return err
	}

	name := g.name
	if name == "" {
		if name, err = g.defaultName(inv, id); err != nil {
			return err
		}
	}

	settings, err := readNode(ctx, inv.Hook, nodeAddress(id, name, g.app))
	if err != nil {
		return g.rewordNotFound(inv, err)
	}

	return printSettings(inv, settings, g.key)
}

// parseArguments checks the relation, and parses KEY and UNIT, which are optional. With --app, UNIT can be the name of
// an application.
func (g *relationGetter) parseArguments(ctx context.Context, inv *hookenv.Invocation) error {
	if err := g.checkRelation(ctx, inv); err != nil {
		return err
	}

	g.key = keyArgument(inv)
	g.name = inv.TrimName(inv.Arg(1))
	switch {
	case len(inv.Args) < 2 || isUnit(g.name):
		// There is no unit, or a valid one.
	case !isService(g.name):
		return hookenv.UsageErrorf("invalid unit name %q", g.name)
	case !g.app:
		return hookenv.UsageErrorf("expected unit name, got application name %q", g.name)
	}

	return inv.LimitArgs(2)
}

// defaultName returns the unit or service whose settings relation-get prints if the arguments do not name one. In the
// hook's own relation, it is the remote service with --app, or else the remote unit. If there is none, or in any other
// relation, it is the local unit. defaultName then returns an error in the modern dialect, without a local unit, and
// in a broken relation.
func (g *relationGetter) defaultName(inv *hookenv.Invocation, id int) (string, error) {
	f := inv.Facts
	switch {
	case id == f.Relation && g.app && f.RemoteService != "":
		return f.RemoteService, nil
	case id == f.Relation && f.RemoteUnit != "":
		return f.RemoteUnit, nil
	case f.Unit == "":
		return "", inv.RequireUnitArgument() // always an error here
	case inv.IsModern():
		return "", hookenv.UsageErrorf("no unit or application specified")
	case id == f.Relation && f.Broken: // the remote units have left the relation
		return "", errBrokenOthers
	}

	return f.Unit, nil
}

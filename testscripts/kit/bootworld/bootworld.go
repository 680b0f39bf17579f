// Package bootworld provides the surroundings of neco's scripts: releases, alerts, a proxy, sabakan,
// and an etcd of three members. Each runs in the test's own process.
package bootworld

import (
	"github.com/rogpeppe/go-internal/testscript"

	"bijou/testscripts/kit/script"
)

// Extras returns the additional commands of neco's scripts.
func Extras() script.Extras {
	return script.Extras{Setup: setUp, Commands: map[string]script.Command{
		"address":   address,
		"alerts":    alerts,
		"failing":   failing,
		"get":       get,
		"members":   members,
		"necobin":   necoBin,
		"proxy":     proxy,
		"releases":  releases,
		"sabakan":   sabakan,
		"scribble":  scribble,
		"shows":     shows,
		"stored":    stored,
		"webfolder": webFolder,
	}}
}

// setUp gives a script's neco a store for its keys.
func setUp(env *testscript.Env) {
	env.Vars = append(env.Vars, "NECO_STATE="+necoState(env))
	env.Values["boot world"] = &bootWorld{}
}

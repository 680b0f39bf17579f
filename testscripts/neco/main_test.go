package neco

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/testscripts/script"
)

// TestMain makes this binary every applet.
func TestMain(m *testing.M) { script.Main(m, 4, nil) }

// TestScripts runs every *.txtar beside it over each store that processes can share.
func TestScripts(t *testing.T) {
	script.Run(t, script.Extras{Setup: setUp, Commands: map[string]script.Command{
		"address":  address,
		"alerts":   alerts,
		"get":      get,
		"members":  members,
		"necobin":  necoBin,
		"proxy":    proxy,
		"releases": releases,
		"sabakan":  sabakan,
		"scribble": scribble,
		"shows":    shows,
		"stored":   stored,
	}})
}

// setUp gives a script's neco a place for its keys.
func setUp(env *testscript.Env) {
	env.Vars = append(env.Vars, "NECO_STATE="+necoState(env))
	env.Values["boot world"] = &bootWorld{}
}

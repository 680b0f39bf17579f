package juju

import "embed"

//go:embed help
var helpFiles embed.FS

func helpInserts() map[string]func() string {
	return map[string]func() string{
		"constraints": func() string { return constraintsHelp },
		"settings":    environmentHelp,
	}
}

package tools

import (
	"context"
	"fmt"
	"strings"

	"bijou/hookenv"
)

// unsupportedSummaries lists the tools that do not work here. They are linked all the same: charm
// libraries probe for them and expect one clear error rather than "command not found".
func unsupportedSummaries() map[string]string {
	return map[string]string{
		"credential-get":     "print the cloud's credential",
		"payload-register":   "register a payload",
		"payload-status-set": "set the status of a payload",
		"payload-unregister": "forget a payload",
	}
}

func unsupportedTool(name, summary string) hookenv.Tool {
	return hookenv.Tool{
		Name:     name,
		Summary:  summary,
		Usage:    "[ARG]...",
		Notes:    "This version of bijou does not support it: it answers with an error and exit code 1.",
		Examples: []string{name + ` || echo "not here"`},
		Prepare: func(f *hookenv.FlagSet) hookenv.Runner {
			f.AcceptUnknown = true
			return func(context.Context, *hookenv.Invocation) error { return notSupported(name) }
		},
	}
}

func notSupported(name string) error {
	kind, _, _ := strings.Cut(name, "-")
	missing := map[string]string{"credential": "cloud credentials for units", "payload": "payloads", "storage": "storage"}[kind]
	return fmt.Errorf("%s is not supported by this version of bijou: it has no %s", name, missing)
}

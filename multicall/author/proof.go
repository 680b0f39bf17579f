package author

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"bijou/multicall/author/proof"
	"bijou/multicall/console"
	"bijou/state/text"
)

type proofCmd struct {
	Dir    string `arg:"" optional:"" default:"." help:"Check the charm in this directory; default: the current one."`
	Strict bool   `help:"Exit with code 1 for warnings as well."`
	Fix    bool   `help:"Fix each fault that has only one possible fix, and print the changes."`
	Format string `enum:"text,json" default:"text" placeholder:"FORMAT" help:"Print as text or json; default text."`
}

// Run prints the findings, each with FILE:LINE first, which editors can follow. It prints nothing for a
// charm without findings.
func (c proofCmd) Run(a *author) error {
	// If a fix fails, the findings are still printed, and the error after them.
	var fixed []proof.Finding
	var failed error
	if c.Fix {
		fixed, failed = proof.Fix(c.Dir, a.parts.Rules)
	}
	findings, err := proof.Check(c.Dir, a.parts.Rules)
	findings = append(fixed, findings...)
	if err != nil {
		return console.Hint(err, "give the directory that has the charm's metadata.yaml or charmcraft.yaml")
	}

	for _, f := range findings {
		place := filepath.Join(c.Dir, f.File)
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d", place, f.Line)
		}
		if c.Format == "text" {
			fmt.Fprintf(a.streams.Out, "%s: %s: %s\n", text.Escape(place), f.Level, text.Escape(f.Message))
		}
	}

	if c.Format == "json" {
		e := json.NewEncoder(a.streams.Out)
		e.SetIndent("", "  ")
		// A copy is not nil, which JSON would print as null.
		err := e.Encode(append([]proof.Finding{}, findings...))
		failed = errors.Join(failed, err)
	}

	isBad := func(f proof.Finding) bool { return f.Level == proof.Error || f.Level == proof.Warning && c.Strict }
	if slices.ContainsFunc(findings, isBad) {
		return console.Exit(console.ExitFailure, failed)
	}

	return failed
}

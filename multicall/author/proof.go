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
	Dir    string `arg:"" optional:"" default:"." help:"The charm's folder; default: this one."`
	Strict bool   `help:"A warning is exit code 1, too."`
	Fix    bool   `help:"Mend all that has one mend, and print what was changed."`
	Format string `enum:"text,json" default:"text" placeholder:"FORMAT" help:"text or json; default text."`
}

// Run prints the findings, each with FILE:LINE first, which editors can follow. It prints nothing for a
// charm without findings.
func (c proofCmd) Run(a *author) error {
	var fixed []proof.Finding
	var err error
	if c.Fix {
		fixed, err = proof.Fix(c.Dir, a.parts.Rules)
	}
	findings, checkErr := proof.Check(c.Dir, a.parts.Rules)
	findings = append(fixed, findings...)
	if checkErr != nil {
		return console.Hint(checkErr, "give the folder that has the charm's metadata.yaml or charmcraft.yaml")
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
		encodeErr := e.Encode(append([]proof.Finding{}, findings...))
		err = errors.Join(err, encodeErr)
	}

	isBad := func(f proof.Finding) bool { return f.Level == proof.Error || f.Level == proof.Warning && c.Strict }
	if slices.ContainsFunc(findings, isBad) {
		return console.Exit(console.ExitFailure, err)
	}

	return err
}

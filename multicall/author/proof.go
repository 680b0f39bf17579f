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

// proofCmd is the command charm proof.
type proofCmd struct {
	Dir    string `arg:"" optional:"" default:"." help:"Check the charm in this directory; default: the current one."`
	Strict bool   `help:"Exit with code 1 for warnings as well."`
	Fix    bool   `help:"Fix each fault that has only one possible fix, and print the changes."`
	Format string `enum:"text,json" default:"text" placeholder:"FORMAT" help:"Print as text or json; default text."`
}

// Run prints the findings. As text, each begins with FILE:LINE, which editors can follow, or with FILE if it is about
// the whole file. Run then prints nothing for a charm without findings. With --fix, it first fixes faults, and also
// prints the changes. It returns an error with ExitFailure if a finding is an error or, with --strict, a warning.
func (c proofCmd) Run(a *author) error {
	// If --fix fails, Run still prints the findings, and then returns the failure.
	var fixed []proof.Finding
	var failure error
	if c.Fix {
		fixed, failure = proof.Fix(c.Dir, a.parts.Rules)
	}

	findings, err := proof.Check(c.Dir, a.parts.Rules)
	findings = append(fixed, findings...)
	if err != nil {
		// The directory cannot be opened. With --fix, failure is the same error.
		return console.Hint(err, "give the directory that has the charm's metadata.yaml or charmcraft.yaml")
	}

	if c.Format == "json" {
		encoder := json.NewEncoder(a.streams.Out)
		encoder.SetIndent("", "  ")
		// JSON would print a nil slice as null, so encode a copy, which is never nil.
		err := encoder.Encode(append([]proof.Finding{}, findings...))
		failure = errors.Join(failure, err)
	} else {
		c.printText(a, findings)
	}

	failsProof := func(f proof.Finding) bool {
		isStrictWarning := f.Level == proof.Warning && c.Strict
		return f.Level == proof.Error || isStrictWarning
	}
	if slices.ContainsFunc(findings, failsProof) {
		return console.Exit(console.ExitFailure, failure)
	}

	return failure
}

// printText prints a line FILE:LINE: LEVEL: MESSAGE for each finding, without the line's number if the
// finding is about the whole file.
func (c proofCmd) printText(a *author, findings []proof.Finding) {
	for _, f := range findings {
		place := filepath.Join(c.Dir, f.File)
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d", place, f.Line)
		}
		fmt.Fprintf(a.streams.Out, "%s: %s: %s\n", text.Escape(place), f.Level, text.Escape(f.Message))
	}
}

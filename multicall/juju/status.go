package juju

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"gopkg.in/yaml.v3"

	"bijou/multicall/console"
	"bijou/state"
)

// statusCmd is `juju status`.
type statusCmd struct {
	Globs  []string `arg:"" optional:"" name:"glob" help:"Only these services and units, with what they touch."`
	Format string   `enum:"tabular,yaml,json" default:"tabular" help:"tabular, yaml or json; default tabular."`
	Output string   `short:"o" placeholder:"FILE" help:"Write there instead of to stdout."`
}

// Help shows how it is used.
func (statusCmd) Help() string {
	return `What is in error or down comes first in its table, in red on a terminal.

Examples:
  juju status
  juju status mysql 'wordpress/*'
  juju status --format yaml -o status.yaml`
}

// Run prints everything as it is at one moment.
func (c statusCmd) Run(o *operator) error {
	if err := checkGlobs(c.Globs); err != nil {
		return console.Usage(err)
	}
	var s state.Status
	err := o.view(func(v *state.View) (err error) {
		s, err = v.Status()
		return err
	})
	if err != nil {
		return err
	}
	if len(c.Globs) > 0 {
		s = selectStatus(s, c.Globs)
	}
	var text bytes.Buffer
	if err := c.write(&text, s, c.Output == "" && console.Coloured(o.streams.Out)); err != nil {
		return fmt.Errorf("cannot print status: %w", err)
	}
	if c.Output == "" {
		_, err := text.WriteTo(o.streams.Out)
		return err
	}
	if err := os.WriteFile(c.Output, text.Bytes(), 0o666); err != nil {
		return fmt.Errorf("cannot write status: %w", err)
	}
	return nil
}

// write prints the status in the wanted format.
func (c statusCmd) write(w io.Writer, s state.Status, coloured bool) error {
	switch c.Format {
	case "yaml":
		return yaml.NewEncoder(w).Encode(s)
	case "json":
		return json.NewEncoder(w).Encode(s)
	}
	return writeTabular(w, s, coloured)
}

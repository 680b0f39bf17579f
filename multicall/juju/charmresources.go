package juju

import (
	"fmt"
	"strconv"
	"strings"

	"bijou/multicall/console"
	"bijou/state/charmsource"
	"bijou/state/constraints"
	"bijou/state/text"
)

type charmResourcesCmd struct {
	Name       string `arg:"" help:"A charm from the store."`
	Channel    string `placeholder:"CHANNEL" help:"Use the release in this channel; default: stable of the charm's default track."`
	Format     string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"Print as tabular, yaml or json; default tabular."`
	outputFlag `embed:""`
}

// charmResource is a resource as the command prints it, with the same keys as in Juju.
type charmResource struct {
	Name        string `json:"name" yaml:"name"`
	Type        string `json:"type" yaml:"type"`
	Path        string `json:"path" yaml:"path"`
	Description string `json:"description,omitempty" yaml:"description,omitempty"`
	Revision    int    `json:"revision,omitempty" yaml:"revision,omitempty"`
	Fingerprint string `json:"fingerprint" yaml:"fingerprint"` // SHA-384
	Size        int64  `json:"size" yaml:"size"`
	Origin      string `json:"origin" yaml:"origin"`
}

// Run lists the resources of the release that the channel has for this host's architecture.
func (c charmResourcesCmd) Run(o *operator) error {
	channel, err := charmsource.ParseChannel(c.Channel)
	if err != nil {
		return console.Usage(err)
	}

	return o.askCharmStore(func(st *charmStore) error {
		wish := charmsource.Wish{Name: strings.TrimPrefix(c.Name, "ch:"), Channel: channel, Arch: constraints.HostArch()}
		r, err := st.resolve(wish)
		if err != nil {
			return fmt.Errorf("cannot list the resources of %q: %w", c.Name, err)
		}
		if len(r.Resources) == 0 && c.Format == "tabular" {
			o.note("charm %q has no resources", r.Name)
		}

		entries := []charmResource{}
		t := console.NewTable("RESOURCE", "REVISION", "TYPE", "BYTES", "DESCRIPTION")
		for _, resource := range r.Resources {
			entries = append(entries, charmResource{
				Name:        resource.Name,
				Type:        resource.Type,
				Path:        resource.Filename,
				Description: resource.Description,
				Revision:    resource.Revision,
				Fingerprint: resource.File.SHA384,
				Size:        resource.File.Size,
				Origin:      "store",
			})
			t.Add(console.Plain, resource.Name, strconv.Itoa(resource.Revision), resource.Type, strconv.FormatInt(resource.File.Size, 10),
				text.FirstLine(resource.Description))
		}
		return o.printTable(c.Format, entries, t)
	})
}

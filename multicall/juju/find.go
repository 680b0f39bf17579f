package juju

import (
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state/charmsource"
)

type findCmd struct {
	Query      string `arg:"" optional:"" help:"Words to search for; without words, the charms that the store features."`
	Category   string `placeholder:"NAME" help:"Show only this category, such as databases or monitoring."`
	Channel    string `placeholder:"CHANNEL" help:"Show only charms with a release in this channel."`
	Type       string `enum:",charm,bundle" default:"" placeholder:"TYPE" help:"Show only charms, or only bundles: charm or bundle."`
	Requires   string `placeholder:"INTERFACE" help:"Show only charms that require this interface."`
	Provides   string `placeholder:"INTERFACE" help:"Show only charms that provide this interface."`
	Format     string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"Print as tabular, yaml or json; default tabular."`
	outputFlag `embed:""`
}

// foundEntry is a search result as the command prints it, with the same keys as in Juju.
type foundEntry struct {
	Type      string      `json:"type" yaml:"type"`
	ID        string      `json:"id" yaml:"id"`
	Name      string      `json:"name" yaml:"name"`
	Publisher string      `json:"publisher" yaml:"publisher"`
	Summary   string      `json:"summary" yaml:"summary"`
	Version   string      `json:"version" yaml:"version"`
	Arches    []string    `json:"architectures,omitempty" yaml:"architectures,omitempty"`
	OS        []string    `json:"os,omitempty" yaml:"os,omitempty"`
	Supports  []baseEntry `json:"supports,omitempty" yaml:"supports,omitempty"`
	StoreURL  string      `json:"store-url" yaml:"store-url"`
}

// baseEntry is a base as the command prints it.
type baseEntry struct {
	Name    string `json:"name" yaml:"name"`
	Channel string `json:"channel" yaml:"channel"` // the version, which is called channel in Juju
}

// Run searches the store, and prints the charms and bundles that it finds.
func (c findCmd) Run(o *operator) error {
	return o.askCharmStore(func(st *charmStore) error {
		results, err := st.store.Find(o.ctx, charmsource.Query{
			Text:     c.Query,
			Category: c.Category,
			Channel:  c.Channel,
			Type:     c.Type,
			Requires: c.Requires,
			Provides: c.Provides,
		})
		if err != nil {
			return err
		}

		if len(results) == 0 {
			o.note("nothing in the store matches")
		}

		entries := []foundEntry{}
		t := console.NewTable("NAME", "BUNDLE", "VERSION", "ARCHITECTURES", "BASES", "PUBLISHER", "SUMMARY")
		for _, f := range results {
			e := newFoundEntry(f)
			entries = append(entries, e)
			bundle := "-"
			if f.Type == charmsource.TypeBundle {
				bundle = "yes"
			}
			arches := strings.Join(e.Arches, ",")
			t.Add(console.Plain, f.Name, bundle, f.Version, arches, formatBases(e.Supports), f.Publisher, f.Summary)
		}
		return o.printTable(c.Format, entries, t)
	})
}

// newFoundEntry returns a search result of the store as the command prints it.
func newFoundEntry(f charmsource.Found) foundEntry {
	e := foundEntry{
		Type:      f.Type,
		ID:        f.ID,
		Name:      f.Name,
		Publisher: f.Publisher,
		Summary:   f.Summary,
		Version:   f.Version,
		StoreURL:  f.URL,
		Arches:    archesOf(f.Bases),
		Supports:  baseEntries(f.Bases),
	}
	for _, b := range f.Bases {
		e.OS = append(e.OS, b.Name)
	}
	slices.Sort(e.OS)
	e.OS = slices.Compact(e.OS)
	return e
}

// archesOf returns the architectures of the bases, sorted, each once.
func archesOf(bases []charmsource.Base) (arches []string) {
	for _, b := range bases {
		arches = append(arches, b.Arch)
	}
	slices.Sort(arches)
	return slices.Compact(arches)
}

// baseEntries returns the bases without their architectures, each once.
func baseEntries(bases []charmsource.Base) (entries []baseEntry) {
	for _, b := range bases {
		e := baseEntry{b.Name, b.Version}
		if !slices.Contains(entries, e) {
			entries = append(entries, e)
		}
	}
	return entries
}

// formatBases returns the bases in one line, such as ubuntu@22.04,ubuntu@24.04.
func formatBases(bases []baseEntry) string {
	var texts []string
	for _, b := range bases {
		texts = append(texts, b.Name+"@"+b.Channel)
	}
	return strings.Join(texts, ",")
}

package juju

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"bijou/multicall/console"
	"bijou/state/charm"
	"bijou/state/charmsource"
	"bijou/state/text"
)

type infoCmd struct {
	Name       string `arg:"" help:"A charm or bundle from the store."`
	Channel    string `placeholder:"CHANNEL" help:"Describe the release in this channel; default: the store's choice."`
	Arch       string `placeholder:"ARCH" help:"Show only channels with a release for this architecture; default: all."`
	Base       string `aliases:"series" placeholder:"BASE" help:"Show only channels with a release for this base (ubuntu@24.04)."`
	Config     bool   `help:"Also show the charm's options."`
	Format     string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"Print as tabular, yaml or json; default tabular."`
	outputFlag `embed:""`
}

// infoEntry describes a charm or bundle as the command prints it, with the same keys as in Juju.
type infoEntry struct {
	Type        string                               `json:"type" yaml:"type"`
	ID          string                               `json:"id" yaml:"id"`
	Name        string                               `json:"name" yaml:"name"`
	Description string                               `json:"description" yaml:"description"`
	Publisher   string                               `json:"publisher" yaml:"publisher"`
	Summary     string                               `json:"summary" yaml:"summary"`
	Supports    []baseEntry                          `json:"supports,omitempty" yaml:"supports,omitempty"`
	StoreURL    string                               `json:"store-url" yaml:"store-url"`
	Tags        []string                             `json:"tags,omitempty" yaml:"tags,omitempty"`
	Charm       *infoCharm                           `json:"charm,omitempty" yaml:"charm,omitempty"`
	Bundle      *infoBundle                          `json:"bundle,omitempty" yaml:"bundle,omitempty"`
	Channels    map[string]map[string][]infoRevision `json:"channels" yaml:"channels"` // by track and risk
	Tracks      []string                             `json:"tracks,omitempty" yaml:"tracks,omitempty"`
}

// infoRevision is a revision that a channel has, as the command prints it.
type infoRevision struct {
	Track    string      `json:"track" yaml:"track"`
	Risk     string      `json:"risk" yaml:"risk"`
	Version  string      `json:"version" yaml:"version"`
	Revision int         `json:"revision" yaml:"revision"`
	Released string      `json:"released-at" yaml:"released-at"`
	Size     int64       `json:"size" yaml:"size"`
	Arches   []string    `json:"architectures" yaml:"architectures"`
	Bases    []baseEntry `json:"bases" yaml:"bases"`
}

// infoCharm is the part of an [infoEntry] that only charms have.
type infoCharm struct {
	Config      *infoConfig                  `json:"config,omitempty" yaml:"config,omitempty"`
	Relations   map[string]map[string]string `json:"relations,omitempty" yaml:"relations,omitempty"`
	Subordinate bool                         `json:"subordinate,omitempty" yaml:"subordinate,omitempty"`
	UsedBy      []string                     `json:"used-by,omitempty" yaml:"used-by,omitempty"`
}

// infoConfig has the options of a charm.
type infoConfig struct {
	Options map[string]infoOption
}

// infoOption is an option of a charm, as the command prints it.
type infoOption struct {
	Type        string `yaml:"type"`
	Description string `yaml:"description"`
	Default     any    `yaml:"default"`
}

// infoBundle is the part of an [infoEntry] that only bundles have.
type infoBundle struct {
	Charms []infoBundleCharm `json:"charms,omitempty" yaml:"charms,omitempty"`
}

// infoBundleCharm is a charm that a bundle contains.
type infoBundleCharm struct {
	Name string `json:"name" yaml:"name"`
}

// infoText is an [infoEntry] in the tabular format, with the fields in Juju's order.
type infoText struct {
	Name        string                       `yaml:"name"`
	Publisher   string                       `yaml:"publisher,omitempty"`
	Summary     string                       `yaml:"summary,omitempty"`
	Description string                       `yaml:"description,omitempty"`
	StoreURL    string                       `yaml:"store-url,omitempty"`
	CharmID     string                       `yaml:"charm-id,omitempty"`
	BundleID    string                       `yaml:"bundle-id,omitempty"`
	Supports    string                       `yaml:"supports,omitempty"`
	Tags        string                       `yaml:"tags,omitempty"`
	Subordinate *bool                        `yaml:"subordinate,omitempty"`
	Relations   map[string]map[string]string `yaml:"relations,omitempty"`
	Charms      string                       `yaml:"charms,omitempty"`
	Channels    string                       `yaml:"channels,omitempty"`
	Config      map[string]infoOption        `yaml:"config,omitempty"`
}

// Run shows the store's information about a charm or bundle.
func (c infoCmd) Run(o *operator) error {
	channel := ""
	if c.Channel != "" {
		var err error
		if channel, err = charmsource.ParseChannel(c.Channel); err != nil {
			return console.Usage(err)
		}
	}

	// This only checks --base. The method includes parses it again.
	if _, err := parseBaseFlag(c.Base); err != nil {
		return err
	}

	return o.askCharmStore(func(st *charmStore) error {
		info, err := st.store.Info(o.ctx, strings.TrimPrefix(c.Name, "ch:"), channel)
		if errors.Is(err, charmsource.ErrNotFound) {
			return console.Hint(err, "juju find WORD searches the store")
		}
		if err != nil {
			return err
		}

		entry := c.newEntry(info)
		if c.Format != "tabular" {
			return o.encode(c.Format, entry)
		}
		encoded, err := text.MarshalYAML(entry.text())
		if err != nil {
			return fmt.Errorf("internal error: %w", err)
		}
		_, err = o.streams.Out.Write(encoded)
		return err
	})
}

// newEntry returns the entry of a charm or bundle as Juju prints it, with the channels that the flags
// select.
func (c infoCmd) newEntry(info charmsource.Info) infoEntry {
	e := infoEntry{
		Type:        info.Type,
		ID:          info.ID,
		Name:        info.Name,
		Description: info.Description,
		Publisher:   info.Publisher,
		Summary:     info.Summary,
		Supports:    baseEntries(info.Bases),
		StoreURL:    info.URL,
		Tags:        info.Tags,
		Channels:    map[string]map[string][]infoRevision{},
	}
	if info.Type == charmsource.TypeBundle {
		e.Bundle = &infoBundle{}
		for _, name := range info.Charms {
			e.Bundle.Charms = append(e.Bundle.Charms, infoBundleCharm{name})
		}
	} else {
		e.Charm = c.newCharm(info)
	}

	// Branches are not shown. A track is listed even if the flags select none of its channels.
	for _, r := range info.Channels {
		if r.Branch != "" {
			continue
		}
		if !slices.Contains(e.Tracks, r.Track) {
			e.Tracks = append(e.Tracks, r.Track)
		}
		if c.includes(r) {
			e.add(r)
		}
	}
	return e
}

// includes reports whether --arch and --base together select one of the release's bases. An option that is not given
// selects every base, as --arch all does.
func (c infoCmd) includes(r charmsource.ChannelRelease) bool {
	wanted := parseBase(c.Base) // has no name without --base
	isSelected := func(b charmsource.Base) bool {
		hasArch := c.Arch == "" || c.Arch == "all" || b.HasArch(c.Arch)
		isBase := wanted.Name == "" || b.String() == wanted.String()
		return hasArch && isBase
	}

	// The channel's own base can be missing among the bases of its revision.
	bases := append(slices.Clone(r.Bases), r.Base)
	return slices.ContainsFunc(bases, isSelected)
}

// add adds the release's revision to its channel's list, unless the list already has that revision. The most
// recently released revision comes first.
func (e *infoEntry) add(r charmsource.ChannelRelease) {
	risks := e.Channels[r.Track]
	if risks == nil {
		risks = map[string][]infoRevision{}
		e.Channels[r.Track] = risks
	}
	if slices.ContainsFunc(risks[r.Risk], func(listed infoRevision) bool { return listed.Revision == r.Revision }) {
		return
	}

	risks[r.Risk] = append(risks[r.Risk], infoRevision{
		Track:    r.Track,
		Risk:     r.Risk,
		Version:  r.Version,
		Revision: r.Revision,
		Released: r.Released,
		Size:     r.Size,
		Arches:   archesOf(r.Bases),
		Bases:    baseEntries(r.Bases),
	})
	// The store's times sort as text.
	slices.SortStableFunc(risks[r.Risk], func(a, b infoRevision) int { return cmp.Compare(b.Released, a.Released) })
}

// newCharm returns the charm-specific part of an entry. It reads only the metadata that the command shows, so
// that it can also describe charms that bijou refuses. It leaves out metadata and options that are not valid YAML.
func (c infoCmd) newCharm(info charmsource.Info) *infoCharm {
	var meta struct {
		Subordinate bool                 `yaml:"subordinate"`
		Provides    map[string]yaml.Node `yaml:"provides"`
		Requires    map[string]yaml.Node `yaml:"requires"`
	}
	var config struct {
		Options map[string]infoOption `yaml:"options"`
	}

	e := &infoCharm{UsedBy: info.UsedBy}
	if decodeDescription(info.Metadata, &meta) {
		e.Subordinate = meta.Subordinate
		for part, endpoints := range map[string]map[string]yaml.Node{"provides": meta.Provides, "requires": meta.Requires} {
			if len(endpoints) == 0 {
				continue
			}
			if e.Relations == nil {
				e.Relations = map[string]map[string]string{}
			}
			e.Relations[part] = interfacesOf(endpoints)
		}
	}

	if c.Config && decodeDescription(info.Config, &config) && len(config.Options) > 0 {
		makeDefaultsEncodable(config.Options)
		e.Config = &infoConfig{config.Options}
	}
	return e
}

// makeDefaultsEncodable replaces each default that JSON cannot hold with its text. JSON has no NaN, and the
// keys of its objects are strings.
func makeDefaultsEncodable(options map[string]infoOption) {
	for name, option := range options {
		if _, err := json.Marshal(option.Default); err != nil {
			option.Default = fmt.Sprint(option.Default)
			options[name] = option
		}
	}
}

// decodeDescription decodes a YAML text of the store into the value at into, with the limits that apply to a
// charm's files. It reports whether the text is valid.
func decodeDescription(description string, into any) bool {
	docs, err := charm.ParseYAML([]byte(description))
	return err == nil && len(docs) == 1 && charm.DecodeYAML(docs[0], into) == nil
}

// interfacesOf returns the interface of each endpoint. In the metadata an endpoint is the interface's name or
// a dictionary.
func interfacesOf(endpoints map[string]yaml.Node) map[string]string {
	interfaces := map[string]string{}
	for name, node := range endpoints {
		// In the short form, as in http: http, the value is the interface.
		interfaces[name] = node.Value

		var endpoint struct {
			Interface string `yaml:"interface"`
		}
		if node.Decode(&endpoint) == nil && endpoint.Interface != "" {
			interfaces[name] = endpoint.Interface
		}
	}
	return interfaces
}

// text returns the entry in the layout of the tabular format.
func (e infoEntry) text() infoText {
	t := infoText{
		Name:        e.Name,
		Publisher:   e.Publisher,
		Summary:     e.Summary,
		Description: e.Description,
		StoreURL:    e.StoreURL,
		Supports:    strings.ReplaceAll(formatBases(e.Supports), ",", ", "),
		Tags:        strings.Join(e.Tags, ", "),
		Channels:    e.channelLines(),
	}
	if e.Bundle != nil {
		t.BundleID = e.ID
		var names []string
		for _, c := range e.Bundle.Charms {
			names = append(names, c.Name)
		}
		t.Charms = strings.Join(names, ", ")
		return t
	}

	// An entry that is not a bundle is a charm.
	t.CharmID = e.ID
	t.Subordinate = &e.Charm.Subordinate
	t.Relations = e.Charm.Relations
	if e.Charm.Config != nil {
		t.Config = e.Charm.Config.Options
	}
	return t
}

// channelLines returns a line for each channel, with the channel's latest release. A channel without a
// release is shown as ^ if the track has a more stable release, which then applies to the channel. Otherwise
// it is shown as --.
func (e infoEntry) channelLines() string {
	var lines strings.Builder
	for _, track := range e.Tracks {
		empty := "--"
		for _, risk := range []string{"stable", "candidate", "beta", "edge"} {
			revisions := e.Channels[track][risk]
			if len(revisions) == 0 {
				fmt.Fprintf(&lines, "%s/%s:  %s\n", track, risk, empty)
				continue
			}

			// The less stable channels below this one follow it. %.10s prints only the date of a time.
			empty = "^"
			r := revisions[0]
			fmt.Fprintf(&lines, "%s/%s:  %s  %.10s  (%d)  %s  %s  %s\n", track, risk, r.Version, r.Released, r.Revision,
				formatBytes(r.Size), strings.Join(r.Arches, ", "), strings.ReplaceAll(formatBases(r.Bases), ",", ", "))
		}
	}
	return lines.String()
}

// formatBytes returns a size in bytes as a whole number of the largest fitting unit, such as 3MB. It rounds down.
func formatBytes(size int64) string {
	units := []string{"B", "kB", "MB", "GB"}
	for len(units) > 1 && size >= 1000 {
		size /= 1000
		units = units[1:]
	}
	return fmt.Sprintf("%d%s", size, units[0])
}

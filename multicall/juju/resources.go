package juju

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/resources"
	"bijou/state/text"
)

type resourcesCmd struct {
	Service    string `arg:"" name:"application" help:"The application, or one of its units."`
	Format     string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"Print as tabular, yaml or json; default tabular."`
	outputFlag `embed:""`
}

// resourceInfo describes a resource that the charm declares, and the file that an operator gave for it.
type resourceInfo struct {
	Description string `json:"description,omitempty" yaml:"description,omitempty"`
	Type        string `json:"type" yaml:"type"`
	File        string `json:"file,omitempty" yaml:"file,omitempty"` // the file's name on units
	Version     int    `json:"version" yaml:"version"`               // 0 if no file was given
	Size        int64  `json:"size" yaml:"size"`                     // in bytes
	SHA256      string `json:"sha256,omitempty" yaml:"sha256,omitempty"`
	Added       string `json:"added,omitempty" yaml:"added,omitempty"`
	Origin      string `json:"origin,omitempty" yaml:"origin,omitempty"`
}

// Run prints the resources that the charm of an application declares, and the file given for each. A unit stands
// for its application.
func (c resourcesCmd) Run(o *operator) error {
	infos, err := readChosen(o, func(v *state.View) (map[string]resourceInfo, error) {
		if charm.IsUnit(c.Service) {
			u, err := v.Unit(c.Service)
			if err != nil {
				return nil, err
			}
			c.Service = u.Service
		}

		ch, err := charmOf(v, c.Service)
		if err != nil {
			return nil, err
		}
		given, err := resources.List(v, c.Service)
		if err != nil {
			return nil, err
		}
		return resourceInfos(ch.Meta, given), nil
	})
	if err != nil {
		return err
	}

	if len(infos) == 0 && c.Format == "tabular" {
		o.note("the charm of application %q has no resources", c.Service)
	}

	t := console.NewTable("RESOURCE", "VERSION", "BYTES", "FILE", "GIVEN AS", "DESCRIPTION")
	for _, name := range slices.Sorted(maps.Keys(infos)) {
		r := infos[name]
		version := "-"
		size := "-"
		if r.Version > 0 {
			version = strconv.Itoa(r.Version)
			size = strconv.FormatInt(r.Size, 10)
		}
		t.Add(console.Plain, name, version, size, r.File, r.Origin, text.FirstLine(r.Description))
	}

	return o.printTable(c.Format, infos, t)
}

// resourceInfos returns the descriptions of the charm's resources, by name, with the given files. It includes
// files of resources that the charm no longer declares.
func resourceInfos(meta charm.Meta, given []resources.Resource) map[string]resourceInfo {
	infos := map[string]resourceInfo{}
	for name, r := range meta.Resources {
		info := resourceInfo{Description: strings.TrimSpace(r.Description), Type: r.Type}
		if info.Type == "" {
			info.Type = "file"
		}
		// For a resource that is not a file, ResourceFile returns an error and no name.
		info.File, _ = meta.ResourceFile(name)
		infos[name] = info
	}

	for _, r := range given {
		info := infos[r.Name]
		info.File = r.File
		info.Version = r.Version
		info.Size = r.Size
		info.SHA256 = r.SHA256
		info.Added = formatTime(r.Added)
		info.Origin = r.Origin
		infos[r.Name] = info
	}

	return infos
}

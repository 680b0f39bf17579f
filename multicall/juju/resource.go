package juju

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/digest"
	"bijou/state/sanitize"
)

// parseResourceFiles checks what can be checked before anything is stored.
func parseResourceFiles(meta *charm.Meta, words []string) (map[string]string, error) {
	files, err := parsePairs(words)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := meta.ResourceFile(name); err != nil {
			return nil, err
		}
		if err := checkResourceFile(files[name]); err != nil {
			return nil, charm.Invalidf("cannot give resource %q: %w", name, err)
		}
	}
	return files, nil
}

func checkResourceFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is not a file", path)
	case info.Size() > state.MaxResource:
		return fmt.Errorf("%q has %d bytes, at most %d (%d MiB)", path, info.Size(), int64(state.MaxResource), state.MaxResource>>20)
	}
	return nil
}

// sumResource returns the sum that the file would be stored under.
func sumResource(path string) (string, error) {
	if err := checkResourceFile(path); err != nil {
		return "", err
	}
	sum, _, err := digest.OfFile(path)
	return sum, err
}

func (o *operator) storeResources(s state.Writer, files map[string]string) (all []state.Resource, err error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		r, err := o.storeResource(s, name, files[name])
		if err != nil {
			return nil, charm.Invalidf("cannot give resource %q: %w", name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func (o *operator) storeResource(s state.Writer, name, path string) (r state.Resource, err error) {
	file, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer file.Close()
	if path, err = filepath.Abs(path); err != nil {
		return r, err
	}
	r = state.Resource{Name: name, Origin: path, Added: time.Now().UTC()}
	r.SHA256, r.Size, err = s.PutFile(o.ctx, file)
	return r, err
}

type attachResourceCmd struct {
	Service   string   `arg:"" help:"The service."`
	Resources []string `arg:"" name:"name=file" help:"Resources of its charm, each with a file."`
}

// Run stores the files and makes them the resources' next versions, all or none.
func (c attachResourceCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		ch, err := state.Read(o.ctx, s, func(v *state.View) (state.Charm, error) { return charmOf(v, c.Service) })
		if err != nil {
			return err
		}
		files, err := parseResourceFiles(&ch.Meta, c.Resources)
		if err != nil {
			return err
		}
		resources, err := o.storeResources(s, files)
		if err != nil {
			return err
		}
		return s.Update(o.ctx, func(tx *state.Tx) error { return putResources(tx, c.Service, resources) })
	})
}

func putResources(tx *state.Tx, service string, resources []state.Resource) error {
	for _, r := range resources {
		if _, err := tx.PutResource(service, r); err != nil {
			return err
		}
	}
	return nil
}

// charmOf returns the charm that a service is to run.
func charmOf(v *state.View, service string) (state.Charm, error) {
	s, err := v.Service(service)
	if err != nil {
		return state.Charm{}, err
	}
	return v.Charm(s.Charm)
}

type resourcesCmd struct {
	Service string `arg:"" help:"The service."`
	Format  string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"tabular, yaml or json; default tabular."`
}

type resourceInfo struct {
	Description string `json:"description,omitempty" yaml:"description,omitempty"`
	Type        string `json:"type" yaml:"type"`
	File        string `json:"file,omitempty" yaml:"file,omitempty"` // as it is called on units
	Version     int    `json:"version" yaml:"version"`               // 0: none was given
	Size        int64  `json:"size" yaml:"size"`                     // in bytes
	SHA256      string `json:"sha256,omitempty" yaml:"sha256,omitempty"`
	Added       string `json:"added,omitempty" yaml:"added,omitempty"`
	Origin      string `json:"origin,omitempty" yaml:"origin,omitempty"`
}

// Run prints the resources that the charm declares, and the file given for each.
func (c resourcesCmd) Run(o *operator) error {
	infos, err := readChosen(o, func(v *state.View) (map[string]resourceInfo, error) {
		ch, err := charmOf(v, c.Service)
		if err != nil {
			return nil, err
		}
		given, err := v.Resources(c.Service)
		return resourceInfos(ch.Meta, given), err
	})
	if err != nil {
		return err
	}
	if len(infos) == 0 && c.Format == "tabular" {
		o.note("the charm of service %q has no resources", c.Service)
	}
	t := console.NewTable("RESOURCE", "VERSION", "BYTES", "FILE", "GIVEN AS", "DESCRIPTION")
	for _, name := range slices.Sorted(maps.Keys(infos)) {
		r := infos[name]
		version, size := "-", "-"
		if r.Version > 0 {
			version, size = strconv.Itoa(r.Version), strconv.FormatInt(r.Size, 10)
		}
		t.Add("", name, version, size, r.File, r.Origin, sanitize.FirstLine(r.Description))
	}
	return o.printTable(c.Format, infos, t)
}

// resourceInfos keeps files of a resource that the charm no longer has.
func resourceInfos(meta charm.Meta, given []state.Resource) map[string]resourceInfo {
	infos := map[string]resourceInfo{}
	for name, r := range meta.Resources {
		info := resourceInfo{Description: strings.TrimSpace(r.Description), Type: r.Type}
		if info.Type == "" {
			info.Type = "file"
		}
		info.File, _ = meta.ResourceFile(name)
		infos[name] = info
	}
	for _, r := range given {
		info := infos[r.Name]
		info.File, info.Version, info.Size, info.SHA256 = r.File, r.Version, r.Size, r.SHA256
		info.Added, info.Origin = formatTime(r.Added), r.Origin
		infos[r.Name] = info
	}
	return infos
}

func (o *operator) noteMissingResources(meta *charm.Meta, service string, files map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(meta.Resources)) {
		_, err := meta.ResourceFile(name)
		if _, given := files[name]; !given && err == nil {
			o.note("hint: the charm may want its resource %q: juju attach-resource %s %s=FILE", name, service, name)
		}
	}
}

package release

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Strategy is how a component is updated on many servers.
type Strategy string

// The strategies.
const (
	StopAll    Strategy = "stop-all"    // stopped on all servers before it is updated on any
	Rolling    Strategy = "rolling"     // updated on one server at a time
	Any        Strategy = "any"         // updated on each server when its turn comes
	LeaderOnce Strategy = "leader-once" // done by one server for all
)

// Manifest is the plan of one release: components in the order in which they are
// updated. It is read with ReadManifest, which refuses what cannot be carried out.
type Manifest struct {
	Version    string      `yaml:"version,omitempty"` // "" in the one that is built in: the binary's
	Components []Component `yaml:"components"`
	// Requires is the version of this program that the plan needs at least; "" is any. A
	// program that is older takes the release without reading the plan.
	Requires string `yaml:"requires,omitempty"`

	Digest string `yaml:"-"` // of the file, as Digest says
}

// Component is one thing that runs on boot servers.
type Component struct {
	Name     string    `yaml:"name"`
	Strategy Strategy  `yaml:"strategy"`
	After    []string  `yaml:"after,omitempty"`    // components that must be done before
	Services []string  `yaml:"services,omitempty"` // systemd units
	Artifact *Artifact `yaml:"artifact,omitempty"` // nil: configuration only
	Files    []Named   `yaml:"files,omitempty"`    // what its services read, which others bring
	Contents *Contents `yaml:"contents,omitempty"` // leader-once only
	Health   *Health   `yaml:"health,omitempty"`   // nil: its services are active
	// Members, for rolling components, is how one finds out from any server if the
	// member of server {lrn} is well. nil: all count whose worker lives.
	Members *Health `yaml:"members,omitempty"`
	// Etcd says that it is an etcd, and where the member of server {lrn} is called by
	// clients, as a state URL: "etcd://10.0.{lrn}.3:2379?ca=FILE".
	Etcd       string      `yaml:"etcd,omitempty"`
	Soak       Duration    `yaml:"soak,omitempty"` // rolling: how long it must stay well
	AfterStart *AfterStart `yaml:"after-start,omitempty"`
	// HealthyWithin is how long it may take to be well after its start; zero: DefaultMaxStart.
	HealthyWithin Duration `yaml:"healthy-within,omitempty"`
	// Timeout is how long one command may take that is run for it; zero: a third of the
	// worker's time-out.
	Timeout Duration `yaml:"timeout,omitempty"`
}

// DefaultMaxStart is how long a component may take to be well, unless it says otherwise.
const DefaultMaxStart = 5 * time.Minute

// MaxStart returns how long the component may take to become healthy after its start.
func (c Component) MaxStart() time.Duration {
	return cmp.Or(time.Duration(c.HealthyWithin), DefaultMaxStart)
}

// Artifact names what a component installs; exactly one field is set.
type Artifact struct {
	Image   string `yaml:"image,omitempty"` // NAME:TAG, perhaps @sha256:...
	Archive *File  `yaml:"archive,omitempty"`
	Deb     *File  `yaml:"deb,omitempty"`
}

// Files returns the files that every server downloads for the artifact, which may be nil.
func (a *Artifact) Files() (all []File) {
	if a == nil {
		return nil
	}

	for _, f := range []*File{a.Archive, a.Deb} {
		if f != nil {
			all = append(all, *f)
		}
	}

	return all
}

// File is something to download: from a URL, or of the release that the plan belongs to.
type File struct {
	URL    string `yaml:"url,omitempty"`
	Name   string `yaml:"file,omitempty"` // of a file of the release
	SHA256 string `yaml:"sha256,omitempty"`
	To     string `yaml:"to,omitempty"` // archives: the folder to unpack into
	// ByArch has URL and SHA256 by architecture, in Go's words; For chooses.
	ByArch map[string]File `yaml:"by-arch,omitempty"`

	Release string `yaml:"-"` // the version of the release that has the file of that name
}

// String returns where the file is, as messages and tables show it.
func (f File) String() string {
	if f.Name != "" {
		return f.Name
	}
	return f.URL
}

// Named is a file on each server, and the sum that it is to have.
type Named struct {
	Path   string `yaml:"path"`
	SHA256 string `yaml:"sha256"`
}

// ForArch returns the manifest for servers of that architecture. Its digest is still over all.
func (m Manifest) ForArch(arch string) (Manifest, error) {
	m.Components = slices.Clone(m.Components)

	for i, c := range m.Components {
		if c.Artifact == nil {
			continue
		}

		a := *c.Artifact
		for _, f := range []**File{&a.Archive, &a.Deb} {
			if *f == nil || (*f).ByArch == nil {
				continue
			}

			own, ok := (*f).ByArch[arch]
			if !ok {
				return m, fmt.Errorf("component %q: there is no artifact for %s", c.Name, arch)
			}

			own.To = (*f).To
			*f = &own
		}
		m.Components[i].Artifact = &a
	}

	return m, nil
}

// eachFile calls change for all that the plan has servers download, of every architecture.
func (m *Manifest) eachFile(change func(f *File) error) error {
	for _, c := range m.Components {
		var all []*File
		if c.Artifact != nil {
			all = append(all, c.Artifact.Archive, c.Artifact.Deb)
		}
		if c.Contents != nil {
			for i := range c.Contents.OSImages {
				all = append(all, &c.Contents.OSImages[i].Kernel, &c.Contents.OSImages[i].Initrd)
			}
			for i := range c.Contents.Ignitions {
				all = append(all, &c.Contents.Ignitions[i].File)
			}
		}

		for _, f := range all {
			if err := f.each(change); err != nil {
				return fmt.Errorf("component %q: %w", c.Name, err)
			}
		}
	}

	return nil
}

// each calls change for the file, or for that of each architecture. No file is none.
func (f *File) each(change func(f *File) error) error {
	if f == nil {
		return nil
	}
	if f.ByArch == nil {
		return change(f)
	}

	for _, arch := range slices.Sorted(maps.Keys(f.ByArch)) {
		one := f.ByArch[arch]
		if err := change(&one); err != nil {
			return fmt.Errorf("for %s: %w", arch, err)
		}
		f.ByArch[arch] = one
	}

	return nil
}

// Contents has what one server uploads to a service for all.
type Contents struct {
	Key       string     `yaml:"key"`                 // contents/<key> holds the result
	URL       string     `yaml:"url,omitempty"`       // sabakan's API
	Images    []string   `yaml:"images,omitempty"`    // container images
	ImagesOf  []string   `yaml:"images-of,omitempty"` // command that prints container images
	OSImages  []OSImage  `yaml:"os-images,omitempty"`
	Ignitions []Ignition `yaml:"ignitions,omitempty"`
}

// Files returns the files that one server downloads for the contents, which may be nil.
func (c *Contents) Files() (all []File) {
	if c == nil {
		return nil
	}

	for _, o := range c.OSImages {
		all = append(all, o.Kernel, o.Initrd)
	}
	for _, i := range c.Ignitions {
		all = append(all, i.File)
	}
	return all
}

// OSImage is one system to boot.
type OSImage struct {
	ID     string `yaml:"id"`
	Kernel File   `yaml:"kernel"`
	Initrd File   `yaml:"initrd"`
}

// Ignition is one template of a role.
type Ignition struct {
	Role string `yaml:"role"`
	ID   string `yaml:"id"`
	File File   `yaml:"file"`
}

// Health is a health check; exactly one field is set.
type Health struct {
	HTTP    string   `yaml:"http,omitempty"`    // answers 200
	Command []string `yaml:"command,omitempty"` // exits 0
}

// AfterStart is a command that is run once the component was started.
type AfterStart struct {
	Command []string `yaml:"command"`
	// EachLineOf is a file of mode 0600: the command runs once a line of it, with
	// the line on stdin. The lines are secrets.
	EachLineOf string `yaml:"each-line-of,omitempty"`
}

// Duration is a time.Duration written with its unit.
type Duration time.Duration

// UnmarshalText reads a duration like "10s".
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// MarshalText writes a duration like "10s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

//go:embed manifest.yaml
var defaultManifest []byte

// DefaultManifest returns the manifest that is built in.
func DefaultManifest() (Manifest, error) { return ReadManifest("manifest.yaml", defaultManifest) }

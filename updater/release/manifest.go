package release

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Strategy is the way in which a component is updated on many servers.
type Strategy string

// The strategies.
const (
	StopAll    Strategy = "stop-all"    // stopped on all servers before it is updated on any
	Rolling    Strategy = "rolling"     // updated on one server at a time
	Any        Strategy = "any"         // updated on all servers independently
	LeaderOnce Strategy = "leader-once" // done by one server on behalf of all
)

// Manifest is the plan of one release. Its components are in the order of their updates. [ReadManifest]
// returns a checked Manifest.
type Manifest struct {
	// Version is the version of the release. It is "" in the built-in manifest.
	Version    string      `yaml:"version,omitempty"`
	Components []Component `yaml:"components"`
	// Requires is the minimum version of this program that can read the plan, or "". An older program installs
	// the release without reading the plan.
	Requires string `yaml:"requires,omitempty"`

	Digest string `yaml:"-"` // the digest of the plan, as returned by PlanDigest
}

// Component is something that runs on boot servers, such as etcd.
type Component struct {
	Name     string    `yaml:"name"`
	Strategy Strategy  `yaml:"strategy"`
	After    []string  `yaml:"after,omitempty"`    // components that must be updated before this one
	Services []string  `yaml:"services,omitempty"` // systemd units
	Artifact *Artifact `yaml:"artifact,omitempty"` // nil if the component has only configuration
	// Files are files that the services read, and that the artifact does not install.
	Files    []Named   `yaml:"files,omitempty"`
	Contents *Contents `yaml:"contents,omitempty"` // only for leader-once
	// Health is the health check. Without one, a component is healthy if its services are active.
	Health *Health `yaml:"health,omitempty"`
	// Members is a health check of a rolling component's member on server {lrn}, which can run on any server.
	// Without one, a member counts as healthy while the worker of its server is running.
	Members *Health `yaml:"members,omitempty"`
	// Etcd marks the component as an etcd. It is the state URL with which clients reach the member on server
	// {lrn}: "etcd://10.0.{lrn}.3:2379?ca=FILE".
	Etcd string `yaml:"etcd,omitempty"`
	// Soak is how long a component must stay healthy after its update.
	Soak       Duration    `yaml:"soak,omitempty"`
	AfterStart *AfterStart `yaml:"after-start,omitempty"`
	// HealthyWithin is how long the component can take to become healthy after its start. Zero means
	// DefaultMaxStart.
	HealthyWithin Duration `yaml:"healthy-within,omitempty"`
	// Timeout limits each command that is run for the component. Zero means a third of the worker's timeout.
	Timeout Duration `yaml:"timeout,omitempty"`
}

// DefaultMaxStart is how long a component can take to become healthy, unless its manifest says otherwise.
const DefaultMaxStart = 5 * time.Minute

// MaxStart returns how long the component can take to become healthy after its start.
func (c Component) MaxStart() time.Duration {
	return cmp.Or(time.Duration(c.HealthyWithin), DefaultMaxStart)
}

// Artifact is the installable part of a component. Exactly one field is set.
type Artifact struct {
	Image   string `yaml:"image,omitempty"` // NAME:TAG, optionally with @sha256:...
	Archive *File  `yaml:"archive,omitempty"`
	Deb     *File  `yaml:"deb,omitempty"`
}

// Files returns the file that every server downloads for the artifact: its archive or package. It returns none
// for an image. The artifact can be nil.
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

// File is a file to download: from a URL, or from the release to which the plan belongs.
type File struct {
	URL    string `yaml:"url,omitempty"`
	Name   string `yaml:"file,omitempty"` // the name of a file of the release
	SHA256 string `yaml:"sha256,omitempty"`
	To     string `yaml:"to,omitempty"` // the directory to unpack an archive into
	// ByArch has the source and sum for each GOARCH. [Manifest.ForArch] chooses one.
	ByArch map[string]File `yaml:"by-arch,omitempty"`

	Release string `yaml:"-"` // the version of the release that has the file Name
}

// String returns the file's name in the release, or its URL.
func (f File) String() string {
	if f.Name != "" {
		return f.Name
	}
	return f.URL
}

// Named is a file on each server with the sum that it must have.
type Named struct {
	Path   string `yaml:"path"`
	SHA256 string `yaml:"sha256"`
}

// ForArch returns a copy of the manifest for servers of the architecture arch, with the same Digest. If an
// artifact has a file for each architecture, the copy has only the file for arch. ForArch returns an error if
// an artifact has files for other architectures only.
func (m Manifest) ForArch(arch string) (Manifest, error) {
	// The caller's manifest must not change.
	m.Components = slices.Clone(m.Components)

	for i, c := range m.Components {
		if c.Artifact == nil {
			continue
		}

		a := *c.Artifact
		var err error
		if a.Archive, err = a.Archive.forArch(arch); err != nil {
			return m, fmt.Errorf("component %q: %w", c.Name, err)
		}
		if a.Deb, err = a.Deb.forArch(arch); err != nil {
			return m, fmt.Errorf("component %q: %w", c.Name, err)
		}
		m.Components[i].Artifact = &a
	}

	return m, nil
}

// forArch returns the file for the architecture, or f itself if f is nil or is the same for all architectures.
// It returns an error if f has files for other architectures only.
func (f *File) forArch(arch string) (*File, error) {
	if f == nil || f.ByArch == nil {
		return f, nil
	}

	chosen, ok := f.ByArch[arch]
	if !ok {
		return nil, fmt.Errorf("there is no artifact for %s", arch)
	}
	// The directory is the same for all architectures, so ByArch does not repeat it.
	chosen.To = f.To
	return &chosen, nil
}

// eachFile calls change for each file that servers download for the components, of every architecture. change
// can change the file. eachFile stops at the first error.
func (m *Manifest) eachFile(change func(f *File) error) error {
	for _, c := range m.Components {
		var files []*File
		if c.Artifact != nil {
			// A file that the artifact does not have is nil, which eachArch ignores.
			files = append(files, c.Artifact.Archive, c.Artifact.Deb)
		}
		if c.Contents != nil {
			for i := range c.Contents.OSImages {
				files = append(files, &c.Contents.OSImages[i].Kernel, &c.Contents.OSImages[i].Initrd)
			}
			for i := range c.Contents.Ignitions {
				files = append(files, &c.Contents.Ignitions[i].File)
			}
		}

		for _, f := range files {
			if err := f.eachArch(change); err != nil {
				return fmt.Errorf("component %q: %w", c.Name, err)
			}
		}
	}

	return nil
}

// eachArch calls change for f, or for the file of each architecture if they differ. It does nothing if f is
// nil.
func (f *File) eachArch(change func(f *File) error) error {
	if f == nil {
		return nil
	}
	if f.ByArch == nil {
		return change(f)
	}

	for _, arch := range slices.Sorted(maps.Keys(f.ByArch)) {
		// A value in a map cannot be changed in place.
		one := f.ByArch[arch]
		if err := change(&one); err != nil {
			return fmt.Errorf("for %s: %w", arch, err)
		}
		f.ByArch[arch] = one
	}

	return nil
}

// Contents is data that one server uploads to a service on behalf of all.
type Contents struct {
	Key       string     `yaml:"key"`                 // the result is in contents/<key>
	URL       string     `yaml:"url,omitempty"`       // the URL of sabakan's API
	Images    []string   `yaml:"images,omitempty"`    // container images
	ImagesOf  []string   `yaml:"images-of,omitempty"` // a command that prints more container images
	OSImages  []OSImage  `yaml:"os-images,omitempty"`
	Ignitions []Ignition `yaml:"ignitions,omitempty"`
}

// Files returns the files that one server downloads for the contents. The contents can be nil.
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

// OSImage is an operating system that machines boot from the network.
type OSImage struct {
	ID     string `yaml:"id"`
	Kernel File   `yaml:"kernel"`
	Initrd File   `yaml:"initrd"`
}

// Ignition is an ignition template for machines of one role.
type Ignition struct {
	Role string `yaml:"role"`
	ID   string `yaml:"id"`
	File File   `yaml:"file"`
}

// Health is a health check. Exactly one field is set.
type Health struct {
	HTTP    string   `yaml:"http,omitempty"`    // a URL that must answer with 200
	Command []string `yaml:"command,omitempty"` // a command that must exit with 0
}

// AfterStart is a command that runs after each start of the component.
type AfterStart struct {
	Command []string `yaml:"command"`
	// EachLineOf is a file with secrets, which must have mode 0600. The command runs once for each line,
	// and gets the line on stdin.
	EachLineOf string `yaml:"each-line-of,omitempty"`
}

// Duration is a time.Duration that is written as text with its unit.
type Duration time.Duration

// UnmarshalText parses a duration such as "10s".
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// MarshalText formats a duration, for example as "10s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

//go:embed manifest.yaml
var defaultManifest []byte

// DefaultManifest returns the built-in manifest.
func DefaultManifest() (Manifest, error) { return ReadManifest("manifest.yaml", defaultManifest) }

package charm

import (
	"maps"
	"slices"
	"strings"
)

// baseYAML is a base of manifest.yaml, or of charmcraft.yaml, which may say apart what it is
// built on.
type baseYAML struct {
	Name          string     `yaml:"name"`
	Channel       string     `yaml:"channel"`
	Architectures []string   `yaml:"architectures"`
	RunOn         []baseYAML `yaml:"run-on"`
}

type platformYAML struct {
	BuildFor seriesYAML `yaml:"build-for"`
}

// setPlatforms takes series and architectures from the bases and platforms, if there are any.
func (m *Meta) setPlatforms(raw *metaYAML) {
	bases := slices.Clone(raw.Bases)
	for _, name := range slices.Sorted(maps.Keys(raw.Platforms)) {
		targets := raw.Platforms[name].BuildFor
		if len(targets) == 0 {
			targets = seriesYAML{name}
		}
		for _, target := range targets {
			base, arch := raw.Base, target
			if i := strings.LastIndexByte(target, ':'); i >= 0 {
				base, arch = target[:i], target[i+1:]
			}
			os, version, _ := strings.Cut(base, "@")
			bases = append(bases, baseYAML{Name: os, Channel: version, Architectures: []string{arch}})
		}
	}
	archs := map[string][]string{}
	for i := 0; i < len(bases); i++ {
		b := bases[i]
		if bases = append(bases, b.RunOn...); b.Name != "" {
			archs[b.series()] = append(archs[b.series()], b.archs()...)
		}
	}
	if len(archs) == 0 {
		return
	}
	m.Series, m.Archs = nil, archs
	for _, b := range bases {
		if b.Name != "" && !slices.Contains(m.Series, b.series()) {
			m.Series = append(m.Series, b.series())
		}
	}
}

func (b baseYAML) archs() []string {
	if len(b.Architectures) == 0 {
		return []string{anyArch}
	}
	return b.Architectures
}

const anyArch = "all"

// series returns the code name, as of os-release(5); of a version that has none, or whose is not
// known here, what providers say of such a system ("fedora40").
func (b baseYAML) series() string {
	version, _, _ := strings.Cut(b.Channel, "/")
	known := map[string]string{
		"ubuntu14.04": "trusty", "ubuntu16.04": "xenial", "ubuntu18.04": "bionic", "ubuntu20.04": "focal", "ubuntu22.04": "jammy",
		"ubuntu23.10": "mantic", "ubuntu24.04": "noble", "ubuntu24.10": "oracular", "ubuntu25.04": "plucky", "ubuntu25.10": "questing",
		"ubuntu26.04": "resolute", "debian10": "buster", "debian11": "bullseye", "debian12": "bookworm", "debian13": "trixie",
	}
	if name, ok := known[b.Name+version]; ok {
		return name
	}
	return b.Name + strings.ReplaceAll(version, ".", "")
}

// SupportsArch reports whether the charm runs on that architecture of that series.
func (m *Meta) SupportsArch(series, arch string) bool {
	archs := m.Archs[series]
	return len(archs) == 0 || slices.Contains(archs, arch) || slices.Contains(archs, anyArch)
}

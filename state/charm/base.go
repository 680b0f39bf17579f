package charm

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// baseYAML is a base in manifest.yaml or charmcraft.yaml. In charmcraft.yaml it can list the bases for running
// separately.
type baseYAML struct {
	Name          string     `yaml:"name"`
	Channel       string     `yaml:"channel"`
	Architectures []string   `yaml:"architectures"`
	RunOn         []baseYAML `yaml:"run-on"`
}

// setPlatforms sets the series and architectures from the bases or, if the charm lists no bases, from the
// platforms. If neither names a system, the series that the metadata list stay.
func (m *Meta) setPlatforms(raw *metaYAML) {
	bases := raw.Bases
	if len(bases) == 0 {
		bases = raw.platformBases()
	}

	for _, written := range bases {
		// The base itself has no name if it only lists where the charm runs.
		for _, b := range append(slices.Clone(written.RunOn), written) {
			if b.Name == "" {
				continue
			}

			// The bases replace the series that the metadata list.
			if m.Archs == nil {
				m.Series = nil
				m.Archs = map[string][]string{}
			}

			series := b.series()
			if m.Archs[series] == nil {
				m.Series = append(m.Series, series)
			}
			if len(b.Architectures) == 0 {
				b.Architectures = []string{anyArch}
			}
			m.Archs[series] = append(m.Archs[series], b.Architectures...)
		}
	}
}

const anyArch = "all"

// platformBases returns the bases under the key "platforms". They are those that a platform lists under
// "build-for" or, without such a list, the platform's name. Each has the form ARCH or BASE:ARCH, as in arm64
// or ubuntu@24.04:arm64. Without BASE, it has the base of the charm.
func (raw *metaYAML) platformBases() (bases []baseYAML) {
	for _, name := range slices.Sorted(maps.Keys(raw.Platforms)) {
		targets := raw.Platforms[name].BuildFor
		if len(targets) == 0 {
			targets = Strings{name}
		}

		for _, target := range targets {
			colon := strings.LastIndexByte(target, ':') // -1 if the target has no base
			base := target[:max(colon, 0)]
			arch := target[colon+1:]

			system, version, _ := strings.Cut(cmp.Or(base, raw.Base), "@")
			bases = append(bases, baseYAML{Name: system, Channel: version, Architectures: []string{arch}})
		}
	}

	return bases
}

// codeNames returns the code name for each system and version. The keys are ID and VERSION_ID of
// os-release(5), without a separator.
func codeNames() map[string]string {
	return map[string]string{
		"ubuntu12.04": "precise",
		"ubuntu14.04": "trusty",
		"ubuntu16.04": "xenial",
		"ubuntu18.04": "bionic",
		"ubuntu20.04": "focal",
		"ubuntu22.04": "jammy",
		"ubuntu23.10": "mantic",
		"ubuntu24.04": "noble",
		"ubuntu24.10": "oracular",
		"ubuntu25.04": "plucky",
		"ubuntu25.10": "questing",
		"ubuntu26.04": "resolute",
		"debian10":    "buster",
		"debian11":    "bullseye",
		"debian12":    "bookworm",
		"debian13":    "trixie",
	}
}

// ArchivedSeries returns the series that Ubuntu and Debian keep in their archives for years, and that run in
// containers. Ubuntu's series come first, since most charms are for Ubuntu. The newest series of each system
// comes first.
func ArchivedSeries() []string {
	return []string{"resolute", "noble", "jammy", "focal", "bionic", "trixie", "bookworm", "bullseye"}
}

// Base is a system and its version, such as ubuntu and 24.04.
type Base struct {
	Name    string `json:"name" yaml:"name"`
	Version string `json:"channel" yaml:"channel"` // called channel in Juju
}

// BaseOfSeries returns the base for a code name. For an unknown series it returns a base with the series as
// its name, and without a version.
func BaseOfSeries(series string) Base {
	for base, codeName := range codeNames() {
		if codeName == series {
			// The version begins with the first digit.
			i := strings.IndexAny(base, "123456789")
			return Base{base[:i], base[i:]}
		}
	}
	return Base{Name: series}
}

// series returns the code name of the base's version. If the code name is unknown, it returns the name and
// version together without dots, as providers write them, such as fedora40.
func (b baseYAML) series() string {
	// A channel can be a version with a slash and more, such as 22.04/stable.
	version, _, _ := strings.Cut(b.Channel, "/")
	if name, ok := codeNames()[b.Name+version]; ok {
		return name
	}
	return b.Name + strings.ReplaceAll(version, ".", "")
}

// SeriesOfBase returns the series of a base NAME@VERSION, such as ubuntu@24.04. It returns any other text
// unchanged.
func SeriesOfBase(text string) string {
	name, version, isBase := strings.Cut(text, "@")
	if !isBase {
		return text
	}
	return baseYAML{Name: name, Channel: version}.series()
}

// SupportsArch reports whether the charm runs on this series and architecture.
func (m *Meta) SupportsArch(series, arch string) bool {
	archs := m.Archs[series]
	return len(archs) == 0 || slices.Contains(archs, arch) || slices.Contains(archs, anyArch)
}

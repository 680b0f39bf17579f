package neco

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"bijou/multicall/console"
	"bijou/updater"
	"bijou/updater/release"
)

type planCmd struct {
	Version string `placeholder:"V" help:"Show the plan of release V; default: the release of the running program."`
	All     bool   `name:"all-assets" help:"Open every package of the release, and check that all have the same plan."`
	Format  string `enum:"text,json,yaml" default:"text" help:"Print as text, json or yaml; default text."`
}

type planDoc struct {
	Version string    `json:"version"`
	Steps   []stepDoc `json:"steps"`
}

type stepDoc struct {
	Step     int    `json:"step"`
	Name     string `json:"name"`
	Strategy string `json:"strategy"`
	Services string `json:"services,omitempty"`
	Artifact string `json:"artifact,omitempty"`
}

// Run prints the steps of a release's plan: the plan of this program or, with the version of a different
// release, a plan that it downloads. With --all-assets, it compares the plans of the release's packages instead.
func (c planCmd) Run(o *operator) error {
	if c.All {
		return c.comparePlans(o)
	}

	manifest := o.parts.Manifest
	version := o.parts.Version
	if c.Version != "" && !release.Same(c.Version, version) {
		fetched, err := c.fetchManifest(o)
		if err != nil {
			return err
		}
		manifest = fetched
		version = c.Version
	}

	// All other formats contain the version.
	if c.Format == "text" {
		o.note("release %s", version)
	}
	table, steps := planTable(manifest)
	return o.printTable(c.Format, planDoc{Version: version, Steps: steps}, table)
}

// planTable returns the manifest's steps as a table and as a document.
func planTable(m release.Manifest) (table *console.Table, steps []stepDoc) {
	table = console.NewTable("STEP", "NAME", "STRATEGY", "SERVICES", "ARTIFACT")
	for _, s := range m.Steps() {
		d := stepDoc{
			Step:     s.Number,
			Name:     s.Name,
			Strategy: string(s.Component.Strategy),
			Services: strings.Join(s.Component.Services, " "),
			Artifact: artifactName(s.Component.Artifact),
		}

		steps = append(steps, d)
		table.Add(console.Plain, fmt.Sprint(d.Step), d.Name, d.Strategy, d.Services, d.Artifact)
	}

	return table, steps
}

// artifactName returns the artifact's name for the table of steps, or "" for a step without an artifact.
func artifactName(a *release.Artifact) string {
	// Files returns none for an image or a nil artifact, and one file otherwise.
	if files := a.Files(); len(files) > 0 {
		return files[0].String()
	}
	if a == nil {
		return ""
	}

	return a.Image
}

// comparePlans prints the digests of the plans in the release's manifest and packages. It then returns an error if
// the plans differ, or if one has a different version than the release.
func (c planCmd) comparePlans(o *operator) error {
	var plans []release.PackagedPlan
	err := c.withSource(o, func(s *release.Source, dir string) (err error) {
		plans, err = s.Plans(o.ctx, c.Version, dir)
		return err
	})
	if err != nil {
		return err
	}

	var mismatchErr error // the last one that was found
	table := console.NewTable("FILE", "VERSION", "PLAN")
	for _, p := range plans {
		table.Add(console.Plain, p.File, cmp.Or(p.Version, "-"),
			cmp.Or(p.Digest, "none: the plan that is built into its program"))
		if p.Digest != plans[0].Digest {
			mismatchErr = fmt.Errorf("the plans in %s and %s differ: servers that install them would not run any step",
				p.File, plans[0].File)
		}

		if p.Version != "" && !release.Same(p.Version, c.Version) {
			mismatchErr = fmt.Errorf("the version in %s is %s", p.File, p.Version)
		}
	}

	if err := table.Write(o.streams.Out, console.CanColour(o.streams.Out)); err != nil {
		return errors.Join(err, mismatchErr)
	}
	return mismatchErr
}

// fetchManifest downloads the manifest of the release that --version names, and returns it for this host's
// architecture.
func (c planCmd) fetchManifest(o *operator) (m release.Manifest, err error) {
	err = c.withSource(o, func(s *release.Source, dir string) (err error) {
		m, err = s.Manifest(o.ctx, c.Version, dir)
		if err != nil {
			return err
		}

		m, err = m.ForArch(runtime.GOARCH)
		return err
	})

	return m, err
}

// withSource calls f with the configured source of releases and a scratch directory, which it removes
// afterwards. It returns a usage error if --version is not a version.
func (c planCmd) withSource(o *operator, f func(s *release.Source, dir string) error) error {
	if _, err := release.ParseVersion(c.Version); err != nil {
		return console.Usage(err)
	}
	config, err := read(o, updater.LoadConfig)
	if err != nil {
		return err
	}

	source, err := newSource(config)
	if err != nil {
		return err
	}
	defer source.Close()

	dir, err := os.MkdirTemp("", "neco-plan-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	return f(source, dir)
}

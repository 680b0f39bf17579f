package juju

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/charmsource"
	"bijou/state/resources"
)

// charmRelease is a release of a charm, from the store or from this host, that must be stored in an
// environment.
type charmRelease struct {
	charmsource.Release
	source     charmsource.Source // the source of its archive
	found      charm.Found        // the charm as source describes it; after a download, its files
	repository string             // the repository of a charm on this host; empty if its path was given
	asked      string             // the channel that the store was asked for
	kept       bool               // whether the environment already has the charm
	archive    string             // the path of the downloaded archive; set by download
	sha384     string             // the checksum of the downloaded archive; set by download
	resources  map[string]int     // revisions of the downloaded resources, by name
}

// isLocal reports whether the charm comes from this host, not from the store.
func (r *charmRelease) isLocal() bool { return r.File.Charm != nil }

// origin returns the origin to record for a service that runs this release on machines of the series. channel
// is the channel that the service follows if the release has no channel of its own. origin uses the series only
// if the release has no base of its own. For a charm on this host, it uses neither channel nor series.
func (r *charmRelease) origin(channel, series string) state.Origin {
	if r.isLocal() {
		// The URL of a file on this host is its path.
		return state.Origin{Repository: r.repository, Path: r.File.URL, Series: r.found.Series, Name: r.Name}
	}

	base := r.Base
	if base.Name == "" {
		base = r.baseFor(series)
	}

	return state.Origin{
		Name:     r.Name,
		Store:    state.StoreCharmhub,
		ID:       r.ID,
		Revision: r.Revision,
		Channel:  cmp.Or(r.Channel, channel),
		Base:     formatBase(base),
	}
}

// formatBase returns the base as text, or "" for a base without a name.
func formatBase(b charmsource.Base) string {
	if b.Name == "" {
		return ""
	}
	return b.String()
}

// baseFor returns the base of machines of the series, if the release supports that base or names no bases.
// Otherwise it returns one of the bases that the release supports.
func (r *charmRelease) baseFor(series string) charmsource.Base {
	own := baseOfSeries(series)
	isOwn := func(b charmsource.Base) bool { return b.String() == own.String() }
	if len(r.Bases) == 0 || slices.ContainsFunc(r.Bases, isOwn) {
		return own
	}

	// The caller only uses the result's name and version, so any architecture will do. With that of the first base,
	// ChooseBase always finds a base.
	chosen, _ := charmsource.ChooseBase(r.Bases, r.Bases[0].Arch)
	return chosen
}

// put stores the charm's archive, and returns a record of the charm with the given URL. It packs a charm of this
// host. For a charm of the store, the caller must call download first, except in a rehearsal. In a rehearsal,
// put assumes that the environment has the archive of a charm of the store.
func (r *charmRelease) put(o *operator, s state.Writer, url charm.URL) (state.Charm, error) {
	if r.isLocal() {
		return r.putPacked(o, s, url)
	}
	if rehearsal, ok := s.(*state.Rehearsal); ok {
		rehearsal.AssumeBlob(r.File.SHA256)
		return r.record(url, r.found.Charm, r.File.SHA256, r.File.Size), nil
	}

	sum, size, err := putFile(o.ctx, s, r.archive)
	if err != nil {
		return state.Charm{}, err
	}
	return r.record(url, r.found.Charm, sum, size), nil
}

// putPacked is [charmRelease.put] for a charm of this host. It packs the charm with the URL's revision.
func (r *charmRelease) putPacked(o *operator, s state.Writer, url charm.URL) (state.Charm, error) {
	scratch, err := os.MkdirTemp("", "bijou-charm-")
	if err != nil {
		return state.Charm{}, fmt.Errorf("cannot archive the charm: %w", err)
	}
	defer os.RemoveAll(scratch)

	// The record of a charm of this host does not have the SHA-384 that fetch returns.
	archive := filepath.Join(scratch, "packed.charm")
	c, _, err := r.fetch(o, archive, notUnpacked, url.Revision)
	if err != nil {
		return state.Charm{}, err
	}
	sum, size, err := putFile(o.ctx, s, archive)
	if err != nil {
		return state.Charm{}, err
	}
	return r.record(url, c, sum, size), nil
}

// record returns the record of the charm. sum and size are the checksum and the size of the charm's archive.
func (r *charmRelease) record(url charm.URL, c *charm.Charm, sum string, size int64) state.Charm {
	record := state.NewCharm(url, c, sum, size)
	if r.isLocal() {
		return record
	}

	// DefaultChannel has no track. For it, the store chooses the charm's default track.
	isDefault := r.Channel != "" && r.asked == charmsource.DefaultChannel
	record.Store = &state.StoreCharm{
		Store:    state.StoreCharmhub,
		ID:       r.ID,
		Name:     r.Name,
		Revision: r.Revision,
		Channel:  r.Channel,
		Default:  isDefault,
		SHA384:   r.sha384,
	}
	for _, b := range r.Bases {
		record.Store.Bases = append(record.Store.Bases, b.String())
	}
	slices.Sort(record.Store.Bases)
	record.Store.Bases = slices.Compact(record.Store.Bases)
	return record
}

// putFile stores a file as a blob, and returns the file's checksum and size.
func putFile(ctx context.Context, s state.Writer, path string) (sum string, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	return s.PutBlob(ctx, file)
}

// markDownloaded sets the origin and revision of each given resource that was downloaded from the store. It does
// nothing for a nil release.
func (r *charmRelease) markDownloaded(given []resources.Resource) {
	if r == nil {
		return
	}

	for i := range given {
		if revision := r.resources[given[i].Name]; revision != 0 { // 0 if the file was not downloaded
			given[i].Origin = state.StoreCharmhub
			given[i].Revision = revision
		}
	}
}

// readDescription sets r.found to the charm as described by the store, without a download. It returns an error if
// the charm is too large or is for Kubernetes, or if the description is invalid.
func (r *charmRelease) readDescription() error {
	if r.File.Size > charm.MaxPacked {
		return fmt.Errorf("revision %d of charm %q is larger than the limit of %d MiB",
			r.Revision, r.Name, charm.MaxPacked>>20)
	}

	// The store can describe a missing file as empty text or {}.
	parts := map[string]string{"metadata.yaml": r.Metadata}
	for name, text := range map[string]string{"config.yaml": r.Config, "actions.yaml": r.Actions} {
		if strings.TrimSpace(text) != "" && strings.TrimSpace(text) != "{}" {
			parts[name] = text
		}
	}
	if len(r.Bases) > 0 {
		parts["manifest.yaml"] = r.manifest()
	}

	c, err := charm.ReadParts(parts)
	if err != nil {
		return err
	}
	if err := r.checkResources(c.Meta); err != nil {
		return err
	}
	c.Revision = r.Revision
	r.found = charm.Found{Charm: c}
	return nil
}

// manifest returns the text of a manifest.yaml, as in a packed charm, with all bases of the release. r.Base
// comes first.
func (r *charmRelease) manifest() string {
	rank := func(b charmsource.Base) int {
		if b.String() == r.Base.String() {
			return 0
		}
		return 1
	}
	bases := slices.Clone(r.Bases)
	slices.SortStableFunc(bases, func(a, b charmsource.Base) int { return rank(a) - rank(b) })

	var text strings.Builder
	text.WriteString("bases:\n")
	for _, b := range bases {
		fmt.Fprintf(&text, "- name: %q\n  channel: %q\n  architectures: [%q]\n", b.Name, b.Version, b.Arch)
	}
	return text.String()
}

// checkResources returns an error if a resource of the charm is a container image, since such a charm is for
// Kubernetes.
func (r *charmRelease) checkResources(meta *charm.Meta) error {
	for name, resource := range meta.Resources {
		if resource.Type == "oci-image" {
			return fmt.Errorf("the charm is for Kubernetes (resource %q is an image): bijou runs charms on machines", name)
		}
	}
	return nil
}

// notUnpacked, given to fetch as dir, means that fetch does not unpack the archive.
const notUnpacked = ""

// fetch writes the charm's archive to path, and checks it as a unit's agent will. The archive of a charm on
// this host gets the given revision. fetch unpacks the archive into dir, unless dir is notUnpacked. sha384 is
// the archive's checksum.
func (r *charmRelease) fetch(
	o *operator,
	path, dir string,
	revision int,
) (c *charm.Charm, sha384 string, err error) {
	file := r.File
	file.Revision = revision // only for an archive that source packs
	sha384, err = r.source.Fetch(o.ctx, file, path)
	if err != nil {
		return nil, "", err
	}
	c, err = charm.ReadPacked(path, dir, o.parts.HookTools)
	return c, sha384, err
}

// download downloads the archive of a release of the store, and unpacks it below scratch. It sets r.archive,
// r.sha384 and r.found.
func (r *charmRelease) download(o *operator, scratch string) error {
	archive := filepath.Join(scratch, "store.charm")
	dir := filepath.Join(scratch, "store")
	c, sha384, err := r.fetch(o, archive, dir, r.Revision)
	if err != nil {
		return err
	}

	c.Revision = r.Revision // the store's, instead of the revision in the archive
	r.archive = archive
	r.sha384 = sha384
	r.found = charm.Found{Charm: c, Path: dir, Series: r.found.Series}
	return nil
}

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
	kept       bool               // the environment has it already
	archive    string             // the path of the downloaded archive; set by download
	sha384     string             // the checksum of the downloaded archive; set by download
	resources  map[string]int     // revisions of the downloaded resources, by name
}

// isLocal reports whether the charm is on this host. The archive of a charm on this host is packed for each
// revision.
func (r *charmRelease) isLocal() bool { return r.File.Charm != nil }

// origin returns the origin to record for a service whose charm follows the channel, on machines of the series.
func (r *charmRelease) origin(channel, series string) state.Origin {
	if r.isLocal() {
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

func formatBase(b charmsource.Base) string {
	if b.Name == "" {
		return ""
	}
	return b.String()
}

// baseFor returns the base of the release for machines of the series. If the release does not have that base,
// baseFor chooses another.
func (r *charmRelease) baseFor(series string) charmsource.Base {
	own := baseOfSeries(series)
	isOwn := func(b charmsource.Base) bool { return b.String() == own.String() }
	if len(r.Bases) == 0 || slices.ContainsFunc(r.Bases, isOwn) {
		return own
	}
	// There is a base: the architecture is that of the first one.
	chosen, _ := charmsource.ChooseBase(r.Bases, r.Bases[0].Arch)
	return chosen
}

// put stores the charm under the URL, and returns its record. It packs a charm of this host. For a charm of the
// store, the caller must call download first. Only in a rehearsal it need not: put then assumes that the
// environment has the archive.
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

// putPacked packs a charm of this host with the URL's revision, and does what put does.
func (r *charmRelease) putPacked(o *operator, s state.Writer, url charm.URL) (state.Charm, error) {
	scratch, err := os.MkdirTemp("", "bijou-charm-")
	if err != nil {
		return state.Charm{}, fmt.Errorf("cannot archive the charm: %w", err)
	}
	defer os.RemoveAll(scratch)

	// Only records of the store's charms have the other checksum.
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

// record returns the record of the charm. sum and size are those of the charm's archive, which is a blob.
func (r *charmRelease) record(url charm.URL, c *charm.Charm, sum string, size int64) state.Charm {
	record := state.NewCharm(url, c, sum, size)
	if r.isLocal() {
		return record
	}

	record.Store = &state.StoreCharm{
		Store:    state.StoreCharmhub,
		ID:       r.ID,
		Name:     r.Name,
		Revision: r.Revision,
		Channel:  r.Channel,
		Default:  r.Channel != "" && r.asked == charmsource.DefaultChannel,
		SHA384:   r.sha384,
	}
	for _, b := range r.Bases {
		record.Store.Bases = append(record.Store.Bases, b.String())
	}
	slices.Sort(record.Store.Bases)
	record.Store.Bases = slices.Compact(record.Store.Bases)
	return record
}

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
		if revision := r.resources[given[i].Name]; revision != 0 {
			given[i].Origin = state.StoreCharmhub
			given[i].Revision = revision
		}
	}
}

// readDescription sets r.found to the charm as described by the store, without a download.
func (r *charmRelease) readDescription() error {
	if r.File.Size > charm.MaxPacked {
		return fmt.Errorf("revision %d of charm %q is larger than the limit of %d MiB",
			r.Revision, r.Name, charm.MaxPacked>>20)
	}

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

// manifest returns the bases in the format of a packed charm, with the release's own base first.
func (r *charmRelease) manifest() string {
	bases := slices.Clone(r.Bases)
	slices.SortStableFunc(bases, func(a, b charmsource.Base) int {
		isFirst := func(b charmsource.Base) int {
			if b.String() == r.Base.String() {
				return 0
			}
			return 1
		}
		return isFirst(a) - isFirst(b)
	})

	var text strings.Builder
	text.WriteString("bases:\n")
	for _, b := range bases {
		fmt.Fprintf(&text, "- name: %q\n  channel: %q\n  architectures: [%q]\n", b.Name, b.Version, b.Arch)
	}
	return text.String()
}

// checkResources returns an error for images, which are for Kubernetes.
func (r *charmRelease) checkResources(meta *charm.Meta) error {
	for name, resource := range meta.Resources {
		if resource.Type == "oci-image" {
			return fmt.Errorf("the charm is for Kubernetes (resource %q is an image): bijou runs charms on machines", name)
		}
	}
	return nil
}

// notUnpacked is the directory for fetch if the archive must not be unpacked.
const notUnpacked = ""

// fetch puts the charm's archive at path, and checks it as a unit will. The archive of a charm on this host
// gets the given revision. fetch unpacks the archive into dir, unless dir is notUnpacked. It also returns the
// archive's checksum.
func (r *charmRelease) fetch(
	o *operator,
	path, dir string,
	revision int,
) (c *charm.Charm, sha384 string, err error) {
	file := r.File
	file.Revision = revision
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

	c.Revision = r.Revision
	r.archive = archive
	r.sha384 = sha384
	r.found = charm.Found{Charm: c, Path: dir, Series: r.found.Series}
	return nil
}

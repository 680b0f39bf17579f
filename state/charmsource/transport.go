package charmsource

import (
	"cmp"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"bijou/state/charm"
)

// refreshFields returns the fields that a refresh request names. Juju requests the same fields.
func refreshFields() []string {
	return []string{
		"actions-yaml", "bases", "config-yaml", "download", "id", "license", "metadata-yaml", "name", "publisher",
		"resources", "revision", "summary", "type", "version",
	}
}

// findFields returns the fields that a search request names.
func findFields() []string {
	return []string{
		"result.publisher.display-name", "result.summary", "result.store-url",
		"default-release.revision.bases.architecture", "default-release.revision.bases.name",
		"default-release.revision.bases.channel", "default-release.revision.version",
	}
}

// infoFields returns the fields that a request for a charm's info names.
func infoFields() []string {
	return []string{
		"result.categories.featured", "result.categories.name", "result.contains-charms.name", "result.description",
		"result.license", "result.publisher.display-name", "result.store-url", "result.summary",
		"default-release.revision.download.size", "default-release.revision.config-yaml",
		"default-release.revision.metadata-yaml", "default-release.revision.bases.architecture",
		"default-release.revision.bases.name", "default-release.revision.bases.channel",
		"default-release.revision.revision", "default-release.revision.version",
		"default-release.channel.name", "default-release.channel.base.architecture",
		"default-release.channel.base.name", "default-release.channel.base.channel",
		"default-release.channel.released-at",
		"default-release.channel.risk", "default-release.channel.track",
		"channel-map.revision.download.size", "channel-map.revision.created-at",
		"channel-map.revision.bases.architecture", "channel-map.revision.bases.name", "channel-map.revision.bases.channel",
		"channel-map.revision.revision", "channel-map.revision.version",
		"channel-map.channel.name", "channel-map.channel.base.architecture", "channel-map.channel.base.name",
		"channel-map.channel.base.channel", "channel-map.channel.released-at", "channel-map.channel.risk",
		"channel-map.channel.track",
	}
}

// baseJSON is a base in a request or response. In a request, the name and channel notKnown stand for an
// unknown base.
type baseJSON struct {
	Architecture string `json:"architecture"`
	Name         string `json:"name"`
	Channel      string `json:"channel"` // the system's version, which a risk can follow, as in 22.04/stable
}

const notKnown = "NA"

// base returns the base without the risk of its channel.
func (b baseJSON) base() Base {
	version, _, _ := strings.Cut(b.Channel, "/")
	return Base{Name: b.Name, Version: version, Arch: b.Architecture}
}

// basesOf returns the bases of a response. It never returns nil.
func basesOf(listed []baseJSON) []Base {
	bases := []Base{}
	for _, b := range listed {
		bases = append(bases, b.base())
	}
	return bases
}

// newBaseJSON returns the base with the architecture arch, for a request. b can have no name.
func newBaseJSON(b Base, arch string) *baseJSON {
	if b.Name == "" {
		return &baseJSON{Architecture: arch, Name: notKnown, Channel: notKnown}
	}
	return &baseJSON{Architecture: arch, Name: b.Name, Channel: b.Version}
}

// refreshRequest is the body of a refresh request, which asks for the releases of several charms.
type refreshRequest struct {
	Context []contextJSON `json:"context"` // never null, but can be empty
	Actions []actionJSON  `json:"actions"`
	Fields  []string      `json:"fields"`
}

// contextJSON is a charm that the caller has. It has the key of the action for the same charm.
type contextJSON struct {
	Key      string    `json:"instance-key"`
	ID       string    `json:"id"`
	Revision int       `json:"revision"`
	Base     *baseJSON `json:"base"`
	Tracking string    `json:"tracking-channel"`
}

// actionJSON is a charm for which the caller wants a release.
type actionJSON struct {
	Action   string    `json:"action"` // install or refresh
	Key      string    `json:"instance-key"`
	ID       string    `json:"id,omitempty"`
	Name     string    `json:"name,omitempty"`
	Channel  string    `json:"channel,omitempty"`
	Revision int       `json:"revision,omitempty"`
	Base     *baseJSON `json:"base"` // null in a request for a revision
}

// add adds a wish to the request, under a key that identifies the result. The action is refresh if the caller
// already has a revision of the charm, and otherwise install.
func (r *refreshRequest) add(w Wish, key string) {
	a := actionJSON{Action: "install", Key: key, Name: w.Name}
	if w.Name == "" {
		a.ID = w.ID
	}

	channel := cmp.Or(w.Channel, DefaultChannel)
	switch {
	case w.Have > 0:
		// The store takes the channel and the base from the context, and the charm by its id.
		a.Action = "refresh"
		a.Name = ""
		a.ID = w.ID
		r.Context = append(r.Context, contextJSON{
			Key:      key,
			ID:       w.ID,
			Revision: w.Have,
			Base:     newBaseJSON(w.Base, w.Arch),
			Tracking: channel,
		})
	case w.Revision > 0:
		a.Revision = w.Revision
	default:
		a.Channel = channel
		a.Base = newBaseJSON(w.Base, w.Arch)
	}
	r.Actions = append(r.Actions, a)
}

// refreshAnswer is the response to a refreshRequest.
type refreshAnswer struct {
	Errors  errorList    `json:"error-list"`
	Results []resultJSON `json:"results"`
}

// resultJSON is the result for one action of a refreshRequest.
type resultJSON struct {
	Key     string       `json:"instance-key"`
	ID      string       `json:"id"`
	Name    string       `json:"name"`
	Channel string       `json:"effective-channel"`
	Result  string       `json:"result"`
	Error   *errorJSON   `json:"error"`
	Charm   *releaseJSON `json:"charm"`
}

// releaseJSON is a revision of a charm or bundle.
type releaseJSON struct {
	Type      string         `json:"type"`
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Revision  int            `json:"revision"`
	Version   string         `json:"version"`
	Bases     []baseJSON     `json:"bases"`
	Download  fileJSON       `json:"download"`
	Metadata  string         `json:"metadata-yaml"`
	Config    string         `json:"config-yaml"`
	Actions   string         `json:"actions-yaml"`
	Resources []resourceJSON `json:"resources"`
}

// release returns the release in the result for the wish w. It returns the result's error if there is one,
// even if the result also contains parts of a charm. It returns ErrAway if the result is not a valid answer
// for the wish. The release has the wish's base, and neither base nor channel if the wish is for a revision.
func (r resultJSON) release(w Wish) (Release, error) {
	name := cmp.Or(w.Name, r.Name, w.ID) // for errors
	if r.Error != nil && r.Error.Code != "" {
		return Release{}, r.Error.explain(name, w)
	}

	c := r.Charm
	if c == nil || r.Result == "error" {
		return Release{}, awayf("the answer of the store has no charm %q", name)
	}

	release := Release{
		Type:     cmp.Or(c.Type, TypeCharm),
		ID:       cmp.Or(c.ID, r.ID),
		Name:     cmp.Or(c.Name, r.Name, w.Name),
		Revision: c.Revision,
		Version:  c.Version,
		Bases:    basesOf(c.Bases),
		Base:     w.Base,
		Metadata: c.Metadata,
		Config:   c.Config,
		Actions:  c.Actions,
	}
	if w.Revision == 0 {
		release.Channel = cmp.Or(r.Channel, w.Channel, DefaultChannel)
	} else {
		// A release that was wished by its number has neither a channel nor a base.
		release.Base = Base{}
	}

	release.File = c.Download.file(fmt.Sprintf("%s %s, revision %d", release.Type, release.Name, release.Revision))
	for _, resource := range c.Resources {
		release.Resources = append(release.Resources, resource.resource(release.Name))
	}

	if err := release.check(name, w); err != nil {
		return Release{}, err
	}
	return release, nil
}

// check returns ErrAway if the release cannot be an answer for the wish w. name is the wished charm in errors.
func (r Release) check(name string, w Wish) error {
	switch {
	case r.Type != TypeCharm && r.Type != TypeBundle:
		return awayf("the answer of the store for %q has the unknown type %.100q", name, r.Type)
	case r.ID == "" || r.Name == "":
		return awayf("the answer of the store for %q has no id or no name", name)
	case charm.CheckName(r.Name) != nil || w.Name != "" && r.Name != w.Name:
		return awayf("the answer of the store for %q has the name %.100q", name, r.Name)
	case !isWord(r.ID) || w.ID != "" && r.ID != w.ID:
		return awayf("the answer of the store for %q has the id %.100q", name, r.ID)
	case w.Revision > 0 && r.Revision != w.Revision:
		return awayf("the answer of the store for revision %d of %q has revision %d", w.Revision, name, r.Revision)
	case r.Revision < 1 || r.Revision > charm.MaxRevision:
		return awayf("the answer of the store for %q has the invalid revision %d", name, r.Revision)
	}

	// An empty channel is valid, for a release that was wished by its revision.
	if _, err := ParseChannel(r.Channel); err != nil {
		return awayf("the answer of the store for %q has an %w", name, err)
	}
	for _, b := range append(slices.Clone(r.Bases), r.Base) {
		if !b.isValid() {
			return awayf("the answer of the store for %q has the invalid base %.100q", name, b)
		}
	}
	for _, resource := range r.Resources {
		if err := charm.CheckResource(resource.Name); err != nil {
			return awayf("the answer of the store for %q has an %w", name, err)
		}
	}
	return nil
}

// fileJSON is a file of the store. It has both spellings of the keys of the sums.
type fileJSON struct {
	Size      int64  `json:"size"`
	URL       string `json:"url"`
	SHA256    string `json:"hash-sha-256"`
	SHA384    string `json:"hash-sha-384"`
	OldSHA256 string `json:"hash-sha256"`
	OldSHA384 string `json:"hash-sha384"`
}

// file returns the file as a [File]. what describes the file. An invalid sum becomes "".
func (f fileJSON) file(what string) File {
	return File{
		What:   what,
		URL:    f.URL,
		Size:   f.Size,
		SHA256: checkSum(cmp.Or(f.SHA256, f.OldSHA256), sha256.Size),
		SHA384: checkSum(cmp.Or(f.SHA384, f.OldSHA384), sha512.Size384),
	}
}

// checkSum returns a sum in lower-case hex. It returns "" if the text is not the hex form of size bytes.
func checkSum(text string, size int) string {
	if sum, err := hex.DecodeString(text); err == nil && len(sum) == size {
		return strings.ToLower(text)
	}
	return ""
}

// resourceJSON is a revision of a resource.
type resourceJSON struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Filename    string   `json:"filename"`
	Description string   `json:"description"`
	Revision    int      `json:"revision"`
	Created     string   `json:"created-at"`
	Download    fileJSON `json:"download"`
}

// resource returns the resource of the charm called charmName. A resource without a type is a file.
func (r resourceJSON) resource(charmName string) Resource {
	return Resource{
		Name:        r.Name,
		Type:        cmp.Or(r.Type, TypeFile),
		Filename:    r.Filename,
		Description: r.Description,
		Revision:    r.Revision,
		Created:     r.Created,
		File:        r.Download.file(fmt.Sprintf("resource %s of %s, revision %d", r.Name, charmName, r.Revision)),
	}
}

// packageJSON is a charm or bundle, as a result of a search or as the response to a request for its info.
type packageJSON struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Name   string `json:"name"`
	Result struct {
		Title       string `json:"title"`
		Summary     string `json:"summary"`
		Description string `json:"description"`
		License     string `json:"license"`
		StoreURL    string `json:"store-url"`
		Publisher   struct {
			Display string `json:"display-name"`
		} `json:"publisher"`
		Categories []struct {
			Name string `json:"name"`
		} `json:"categories"`
		UsedBy []string `json:"used-by"`
		Charms []struct {
			Name string `json:"name"`
		} `json:"contains-charms"`
	} `json:"result"`
	Default  channelJSON   `json:"default-release"`
	Channels []channelJSON `json:"channel-map"`
}

// channelJSON is a channel's release for a base.
type channelJSON struct {
	Channel struct {
		Name     string   `json:"name"`
		Track    string   `json:"track"`
		Risk     string   `json:"risk"`
		Released string   `json:"released-at"`
		Base     baseJSON `json:"base"`
	} `json:"channel"`
	Revision releaseJSON `json:"revision"`
}

// found returns the search result as a [Found].
func (p packageJSON) found() Found {
	return Found{
		Type:      cmp.Or(p.Type, TypeCharm),
		ID:        p.ID,
		Name:      p.Name,
		Publisher: p.Result.Publisher.Display,
		Summary:   p.Result.Summary,
		Version:   p.Default.Revision.Version,
		Bases:     basesOf(p.Default.Revision.Bases),
		URL:       p.Result.StoreURL,
	}
}

// info returns the store's description as an [Info].
func (p packageJSON) info() Info {
	info := Info{
		Found:       p.found(),
		Title:       p.Result.Title,
		Description: p.Result.Description,
		License:     p.Result.License,
		UsedBy:      p.Result.UsedBy,
		Metadata:    p.Default.Revision.Metadata,
		Config:      p.Default.Revision.Config,
	}
	for _, c := range p.Result.Categories {
		info.Tags = append(info.Tags, c.Name)
	}
	for _, c := range p.Result.Charms {
		info.Charms = append(info.Charms, c.Name)
	}

	for _, c := range p.Channels {
		track, risk, branch := splitChannel(c.Channel.Name)
		info.Channels = append(info.Channels, ChannelRelease{
			Track:    cmp.Or(c.Channel.Track, track),
			Risk:     cmp.Or(c.Channel.Risk, risk),
			Branch:   branch,
			Released: c.Channel.Released,
			Base:     c.Channel.Base.base(),
			Revision: c.Revision.Revision,
			Version:  c.Revision.Version,
			Size:     c.Revision.Download.Size,
			Bases:    basesOf(c.Revision.Bases),
		})
	}
	return info
}

// splitChannel returns the parts of a channel's name. A part that the name lacks is empty, except that
// the track is then "latest".
func splitChannel(name string) (track, risk, branch string) {
	parts := append(strings.SplitN(WholeChannel(name), "/", 3), "", "")
	return parts[0], parts[1], parts[2]
}

// errorJSON is an error of the store. Extra is set if a charm has no release for a wish.
type errorJSON struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Extra   struct {
		Releases []struct {
			Channel string   `json:"channel"`
			Base    baseJSON `json:"base"`
		} `json:"releases"`
		Default []baseJSON `json:"default-bases"`
	} `json:"extra"`
}

// explain returns the error as an answer to the wish w. name is the wished charm in errors. explain does not
// use the store's own text, which contains the request's random key.
func (e errorJSON) explain(name string, w Wish) error {
	switch e.Code {
	case "name-not-found", "id-not-found":
		return fmt.Errorf("charm %q: %w", name, ErrNotFound)
	case "revision-not-found", "invalid-charm-base", "invalid-charm-platform", "missing-charm-base", "channel-not-found":
		noRelease := &NoReleaseError{Name: name, Wish: w, Default: basesOf(e.Extra.Default)}
		for _, r := range e.Extra.Releases {
			noRelease.Offers = append(noRelease.Offers, Offer{r.Channel, r.Base.base()})
		}
		return noRelease
	case "invalid-channel":
		return fmt.Errorf("charm %q cannot have a channel %q", name, w.Channel)
	case "refresh-bundle-not-supported":
		return fmt.Errorf("%q is a bundle: deploy it again instead", name)
	}
	return errorList{e}.explain()
}

// errorList are the errors of a request that the store refused.
type errorList []errorJSON

// explain returns one error for the request: ErrNotFound, ErrAway, or an error that says why the store refuses
// the request. If the list has several errors, the first case below that matches any of them applies. The list must
// not be empty.
func (l errorList) explain() error {
	code := l[0].Code // shown, once a case below has matched, as the code that it has matched
	has := func(codes ...string) bool {
		i := slices.IndexFunc(l, func(e errorJSON) bool { return slices.Contains(codes, e.Code) })
		if i >= 0 {
			code = l[i].Code
		}
		return i >= 0
	}

	switch {
	case has("not-found", "name-not-found", "id-not-found", "resource-not-found", "invalid-charm-resource"):
		return ErrNotFound
	case has("rate-limit-exceeded"):
		return awayf("the store limits requests; try again later")
	case has("remote-service-unavailable", "api-error", "endpoint-disabled"):
		return awayf("the store failed (%.100q); try again later", code)
	case has("access-by-revision-not-allowed", "store-disallowed", "payment-required", "macaroon-permission-required",
		"user-authentication-required", "user-authorization-needs-refresh", "device-authentication-required"):
		return fmt.Errorf("the store does not give you access (%.100q)", code)
	case has("invalid-unbound-empty-search"):
		return fmt.Errorf("no search words given")
	}
	return awayf("the store did not understand the request (%.100q)", code)
}

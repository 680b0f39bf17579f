package charmsource

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bijou/state/text"
)

// ErrNotFound is returned if the source does not have the charm, bundle or resource, or does not show it to
// the public.
var ErrNotFound = errors.New("the store does not have it")

// notFoundError is an ErrNotFound with a different text.
type notFoundError struct{ error }

// Is reports whether target is ErrNotFound.
func (e notFoundError) Is(target error) bool { return target == ErrNotFound }

// Unwrap returns the error with the text.
func (e notFoundError) Unwrap() error { return e.error }

// ErrAway is returned if the store cannot be reached, or does not answer as a charm store.
var ErrAway = errors.New("the store cannot be reached")

// awayError is an ErrAway with a different text.
type awayError struct{ error }

// Is reports whether target is ErrAway.
func (e awayError) Is(target error) bool { return target == ErrAway }

// Unwrap returns the error with the text.
func (e awayError) Unwrap() error { return e.error }

// awayf returns an ErrAway with the given text.
func awayf(format string, args ...any) error { return awayError{fmt.Errorf(format, args...)} }

// Offer is a channel that has a release for a base.
type Offer struct {
	Channel string
	Base    Base
}

// NoReleaseError is returned if a source has no release for a wish. It lists the releases that exist.
type NoReleaseError struct {
	Name    string // the charm's name
	Wish    Wish
	Offers  []Offer // the store's releases for all architectures; can be empty
	Default []Base  // the bases of the channel's own release; can be empty
}

// Error names the charm and the wish. Unless the wish is for a revision, it also describes the releases for the
// wished architecture.
func (e *NoReleaseError) Error() string {
	if e.Wish.Revision > 0 {
		return fmt.Sprintf("charm %q has no revision %d", e.Name, e.Wish.Revision)
	}

	forBase := ""
	if e.Wish.Base.Name != "" {
		forBase = fmt.Sprintf(" for %s", e.Wish.Base)
	}
	return fmt.Sprintf("charm %q has no release in channel %q%s on %s; %s",
		e.Name, cmp.Or(e.Wish.Channel, DefaultChannel), forBase, e.Wish.Arch, e.describeOffers())
}

// maxOffers is the maximum number of releases in an error.
const maxOffers = 12

// describeOffers returns the end of the error's text. It lists the releases for the wished architecture, at most
// maxOffers of them, each in the form "14/stable (ubuntu@22.04)", or says that there are none.
func (e *NoReleaseError) describeOffers() string {
	var texts []string
	for _, o := range e.Matching() {
		texts = append(texts, text.Escape(fmt.Sprintf("%.100s (%.100s)", o.Channel, o.Base)))
	}
	// An offer for the wished architecture and one for all architectures can have the same text.
	texts = slices.Compact(texts)

	switch {
	case len(texts) == 0:
		return "there is none for this architecture"
	case len(texts) > maxOffers:
		texts = append(texts[:maxOffers], fmt.Sprintf("%d more", len(texts)-maxOffers))
	}
	return "there are " + strings.Join(texts, ", ")
}

// HasOtherBase reports whether there is a release for the wished architecture in a channel of the wished track
// whose risk is at least as stable as the wished risk. If the wish names no track, any track counts. HasOtherBase
// ignores branches. Since the wished base has no release, that release is for a different base.
func (e *NoReleaseError) HasOtherBase() bool {
	wished := strings.Split(cmp.Or(e.Wish.Channel, DefaultChannel), "/")
	// A channel that is only a risk is in the charm's default track. The error does not name that track, so any
	// track counts.
	anyTrack := isRisk(wished[0])
	if anyTrack {
		wished = append([]string{""}, wished...) // the risk is always wished[1]
	}

	// Later risks are more stable.
	risks := []string{"edge", "beta", "candidate", "stable"}
	return slices.ContainsFunc(e.Matching(), func(o Offer) bool {
		parts := strings.Split(o.Channel, "/")
		isTrack := anyTrack || parts[0] == wished[0]
		return isTrack && len(parts) > 1 && slices.Index(risks, parts[1]) >= slices.Index(risks, wished[1])
	})
}

// Matching returns the releases for the wished architecture. The names of their channels include the track.
// If the store lists no releases, Matching takes each base in e.Default as a release in the wished channel.
func (e *NoReleaseError) Matching() (offers []Offer) {
	listed := e.Offers
	if len(listed) == 0 {
		for _, b := range e.Default {
			listed = append(listed, Offer{cmp.Or(e.Wish.Channel, DefaultChannel), b})
		}
	}

	for _, o := range listed {
		if o.Base.HasArch(e.Wish.Arch) {
			offers = append(offers, Offer{WholeChannel(o.Channel), o.Base})
		}
	}
	return offers
}

// candidates returns the bases that the next wish can use instead of the wished base. These are the bases in
// e.Default. If there are none, they are the bases of the offers in the wished channel. They can be for any
// architecture.
func (e *NoReleaseError) candidates() []Base {
	if len(e.Default) > 0 {
		return e.Default
	}

	var bases []Base
	for _, o := range e.Offers {
		if WholeChannel(o.Channel) == WholeChannel(cmp.Or(e.Wish.Channel, DefaultChannel)) {
			bases = append(bases, o.Base)
		}
	}
	return bases
}

package charmsource

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bijou/state/text"
)

// ErrNotFound is returned if the source does not have the charm, bundle or resource, or if it is not public.
var ErrNotFound = errors.New("the store does not have it")

// notFoundError is an ErrNotFound with a different text.
type notFoundError struct{ error }

func (e notFoundError) Is(target error) bool { return target == ErrNotFound }

func (e notFoundError) Unwrap() error { return e.error }

// ErrAway is returned if the store cannot be reached, or does not answer as a charm store.
var ErrAway = errors.New("the store cannot be reached")

// awayError is an ErrAway with a different text.
type awayError struct{ error }

func (e awayError) Is(target error) bool { return target == ErrAway }

func (e awayError) Unwrap() error { return e.error }

func awayf(format string, args ...any) error { return awayError{fmt.Errorf(format, args...)} }

// Offer is a channel that has a release for a base.
type Offer struct {
	Channel string
	Base    Base
}

// NoReleaseError is returned if a channel has no release for a wish. It lists the releases that exist.
type NoReleaseError struct {
	Name    string
	Wish    Wish
	Offers  []Offer // the store's releases for all architectures; can be empty
	Default []Base  // the bases of the channel's own release
}

func (e *NoReleaseError) Error() string {
	if e.Wish.Revision > 0 {
		return fmt.Sprintf("charm %q has no revision %d", e.Name, e.Wish.Revision)
	}

	where := ""
	if e.Wish.Base.Name != "" {
		where = fmt.Sprintf(" for %s", e.Wish.Base)
	}
	return fmt.Sprintf("charm %q has no release in channel %q%s on %s; %s",
		e.Name, cmp.Or(e.Wish.Channel, DefaultChannel), where, e.Wish.Arch, e.describeOffers())
}

// maxOffers is the maximum number of releases in an error.
const maxOffers = 12

// describeOffers lists the releases for the wished architecture, in the form "14/stable (ubuntu@22.04)".
func (e *NoReleaseError) describeOffers() string {
	var texts []string
	for _, o := range e.Matching() {
		texts = append(texts, text.Escape(fmt.Sprintf("%.100s (%.100s)", o.Channel, o.Base)))
	}
	texts = slices.Compact(texts)

	switch {
	case len(texts) == 0:
		return "there is none for this architecture"
	case len(texts) > maxOffers:
		texts = append(texts[:maxOffers], fmt.Sprintf("%d more", len(texts)-maxOffers))
	}
	return "there are " + strings.Join(texts, ", ")
}

// HasOtherBase reports whether the wished channel, or a more stable one of its track, has a release for a different
// base.
func (e *NoReleaseError) HasOtherBase() bool {
	wished := strings.Split(cmp.Or(e.Wish.Channel, DefaultChannel), "/")
	anyTrack := isRisk(wished[0])
	if anyTrack {
		wished = append([]string{""}, wished...)
	}

	risks := []string{"edge", "beta", "candidate", "stable"}
	return slices.ContainsFunc(e.Matching(), func(o Offer) bool {
		parts := strings.Split(o.Channel, "/")
		isTrack := anyTrack || parts[0] == wished[0]
		return isTrack && len(parts) > 1 && slices.Index(risks, parts[1]) >= slices.Index(risks, wished[1])
	})
}

// Matching returns the releases for the wished architecture, with whole channels.
func (e *NoReleaseError) Matching() (offers []Offer) {
	all := e.Offers
	if len(all) == 0 {
		for _, b := range e.Default {
			all = append(all, Offer{cmp.Or(e.Wish.Channel, DefaultChannel), b})
		}
	}

	for _, o := range all {
		if o.Base.HasArch(e.Wish.Arch) {
			offers = append(offers, Offer{WholeChannel(o.Channel), o.Base})
		}
	}
	return offers
}

// candidates returns the bases from which to choose a different one. They are the bases that the store lists
// for the channel. If the store lists none, they are the bases that have a release in the channel.
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

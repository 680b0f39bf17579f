package charmsource

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bijou/state/text"
)

// ErrNotFound is of a charm, bundle or resource that the store does not have, or not for everybody.
var ErrNotFound = errors.New("the store does not have it")

// ErrAway is of a store that cannot be reached, or does not answer as one.
var ErrAway = errors.New("the store cannot be asked")

// awayError has its own words, of which ErrAway is none.
type awayError struct{ error }

func (e awayError) Is(target error) bool { return target == ErrAway }

func (e awayError) Unwrap() error { return e.error }

func awayf(format string, args ...any) error { return awayError{fmt.Errorf(format, args...)} }

// Offer is a channel that has a release for a base.
type Offer struct {
	Channel string
	Base    Base
}

// NoReleaseError says that a channel has no release for what was wished, and what there is.
type NoReleaseError struct {
	Name    string
	Wish    Wish
	Offers  []Offer // of all architectures, as the store has said; may be empty
	Default []Base  // bases that the channel has
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

// maxOffers are shown of what there is.
const maxOffers = 12

// describeOffers lists the releases for the wished architecture, as in "14/stable (ubuntu@22.04)".
func (e *NoReleaseError) describeOffers() string {
	var texts []string
	for _, o := range e.Matching() {
		texts = append(texts, text.Escape(fmt.Sprintf("%s (%s)", o.Channel, o.Base)))
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

// HasOtherBase reports whether the wished channel, or a channel that stands in for it, has a release of another base.
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

// Matching returns the offers of the wished architecture.
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

// candidates returns the bases to choose another one from: those that the store says of the channel, else
// those that have a release there.
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

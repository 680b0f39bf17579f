package juju

import (
	"fmt"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
)

// findKept returns the charm with the given revision to which the service can return, or nil if there is
// none. The first choice is a charm with the current charm's name that the service keeps. The second choice
// is the charm with the current name and series, if the environment has it. The last choice is a charm with a
// different name that the service keeps.
func findKept(v *state.View, s state.Service, revision int) (*state.KeptCharm, error) {
	current, err := charm.ParseURL(s.Charm)
	if err != nil {
		return nil, err
	}
	kept, err := v.KeptCharms(s.Name)
	if err != nil {
		return nil, err
	}

	var renamed *state.KeptCharm // the first kept charm with the revision and a different name
	for _, k := range kept {
		url, err := charm.ParseURL(k.Charm)
		if err != nil {
			return nil, err
		}

		if url.Revision != revision {
			continue
		}
		if url.Name == current.Name {
			return &k, nil
		}
		if renamed == nil {
			renamed = &k
		}
	}

	// The environment may have the charm without keeping it for this service.
	unkept := charm.URL{Series: current.Series, Name: current.Name, Revision: revision}
	_, err = v.Charm(unkept.String())
	if err != nil {
		// If the environment does not have the charm, renamed is the last choice, and there is no error.
		return renamed, state.IgnoreNotFound(err)
	}
	return &state.KeptCharm{Charm: unkept.String(), Origin: s.Origin}, nil
}

// withKeptHint returns the error refused with a hint that lists the charms to which the service can return.
// It adds no hint if there are no such charms.
func (o *operator) withKeptHint(s state.Writer, service string, refused error) error {
	kept, err := state.Read(o.ctx, s, func(v *state.View) ([]state.KeptCharm, error) {
		return v.KeptCharms(service)
	})
	// The hint is only an addition, so refused is returned even if the kept charms cannot be read.
	if err != nil || len(kept) == 0 {
		return refused
	}

	return console.Hint(refused, fmt.Sprintf("earlier charms in the model: %s; to return to the first of these: juju rollback %s",
		describeKept(kept), service))
}

// describeKept returns the charms in one line. If a charm is kept only until a certain time, that time
// follows the charm.
func describeKept(kept []state.KeptCharm) string {
	var texts []string
	for _, k := range kept {
		text := k.Charm
		if !k.Until.IsZero() {
			text += " (until " + k.Until.Local().Format(time.DateTime) + ")"
		}
		texts = append(texts, text)
	}

	return strings.Join(texts, ", ")
}

package charmsource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// DefaultChannel is asked for where no channel is given. A store takes a bare risk for one of the charm's
// default track, which need not be latest.
const DefaultChannel = "stable"

// latestTrack is the track of a channel whose name has none.
const latestTrack = "latest"

func isRisk(word string) bool {
	return slices.Contains([]string{"stable", "candidate", "beta", "edge"}, word)
}

// ParseChannel returns a channel in the form [TRACK/]RISK[/BRANCH] that stores understand. A lone track
// such as 14 becomes 14/stable, a lone risk is one of the track latest, and an empty text is DefaultChannel.
func ParseChannel(text string) (string, error) { return ParseChannelFrom("", text) }

// ParseChannelFrom does what ParseChannel does, for an application that follows a channel already: a lone
// risk is one of the followed track, and an empty text is the followed channel.
func ParseChannelFrom(followed, text string) (string, error) {
	if text == "" {
		return cmp.Or(followed, DefaultChannel), nil
	}

	parts := strings.Split(text, "/")
	n := len(parts)
	isBad := func(word string) bool { return word == "" || strings.ContainsAny(word, " \t\n\"\\") }
	switch {
	case slices.ContainsFunc(parts, isBad):
		// Refused below.
	case isRisk(parts[0]) && n <= 2:
		track, _, _ := strings.Cut(WholeChannel(followed), "/")
		return cmp.Or(track, latestTrack) + "/" + text, nil
	case n >= 2 && n <= 3 && isRisk(parts[1]):
		return text, nil
	case n == 1:
		return text + "/" + DefaultChannel, nil
	}

	return "", fmt.Errorf(
		"invalid channel %q: want [TRACK/]RISK[/BRANCH], as in 14/stable, with a risk of stable, candidate, beta, edge",
		text,
	)
}

// WholeChannel returns a channel with its track, by which two names of one channel are the same.
func WholeChannel(channel string) string {
	if first, _, _ := strings.Cut(channel, "/"); isRisk(first) {
		return latestTrack + "/" + channel
	}
	return channel
}

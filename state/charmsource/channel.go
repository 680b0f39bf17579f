package charmsource

import (
	"fmt"
	"slices"
	"strings"
)

// DefaultChannel is asked for where no channel is given. A bare risk is of the charm's
// default track, which need not be latest.
const DefaultChannel = "stable"

// latestTrack is the track of a channel whose name has none.
const latestTrack = "latest"

func isRisk(word string) bool {
	return slices.Contains([]string{"stable", "candidate", "beta", "edge"}, word)
}

// ParseChannel returns a channel as a store is asked for it: [TRACK/]RISK[/BRANCH], of which 14 is
// 14/stable, and nothing is DefaultChannel.
func ParseChannel(text string) (string, error) {
	if text == "" {
		return DefaultChannel, nil
	}

	parts := strings.Split(text, "/")
	n := len(parts)
	isBad := func(word string) bool { return word == "" || strings.ContainsAny(word, " \t\n\"\\") }
	switch {
	case slices.ContainsFunc(parts, isBad):
	case isRisk(parts[0]) && n <= 2, n >= 2 && n <= 3 && isRisk(parts[1]):
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

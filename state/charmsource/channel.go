package charmsource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bijou/state/text"
)

// DefaultChannel is the channel of a wish that names none. For a risk without a track, the store uses the
// charm's default track, which can be a track other than "latest".
const DefaultChannel = "stable"

// latestTrack is the track of a channel whose name has no track.
const latestTrack = "latest"

// isRisk reports whether the word is one of the four risks of channels.
func isRisk(word string) bool {
	return slices.Contains([]string{"stable", "candidate", "beta", "edge"}, word)
}

// maxWord is the maximum length in bytes of a part of a channel or base.
const maxWord = 128

// isWord reports whether the text can be a part of a channel or base.
func isWord(word string) bool {
	return word != "" && len(word) <= maxWord && !strings.ContainsAny(word, " \t\"\\") && text.Escape(word) == word
}

// ParseChannel returns a channel in the stores' form [TRACK/]RISK[/BRANCH]. A track without a risk, such as 14, becomes
// 14/stable. A risk without a track gets the track latest. An empty text becomes DefaultChannel.
func ParseChannel(text string) (string, error) { return ParseChannelFrom("", text) }

// ParseChannelFrom is ParseChannel for an application that already follows a channel. A risk without a track gets the
// followed track, and an empty text becomes the followed channel. If followed is empty, ParseChannelFrom does the same
// as ParseChannel.
func ParseChannelFrom(followed, text string) (string, error) {
	if text == "" {
		return cmp.Or(followed, DefaultChannel), nil
	}

	parts := strings.Split(text, "/")
	n := len(parts)
	isBad := func(word string) bool { return !isWord(word) }
	switch {
	case slices.ContainsFunc(parts, isBad):
		// The error is returned below.
	case isRisk(parts[0]) && n <= 2:
		// RISK or RISK/BRANCH
		track, _, _ := strings.Cut(WholeChannel(followed), "/") // empty if followed is empty
		return cmp.Or(track, latestTrack) + "/" + text, nil
	case n >= 2 && n <= 3 && isRisk(parts[1]):
		// TRACK/RISK or TRACK/RISK/BRANCH
		return text, nil
	case n == 1:
		// TRACK, which gets the risk stable
		return text + "/" + DefaultChannel, nil
	}

	return "", fmt.Errorf(
		"invalid channel %.200q: want [TRACK/]RISK[/BRANCH], as in 14/stable, where RISK is stable, candidate, beta or edge",
		text,
	)
}

// WholeChannel returns the channel's name with the track latest if the name has no track. Names of the same
// channel then become equal.
func WholeChannel(channel string) string {
	if first, _, _ := strings.Cut(channel, "/"); isRisk(first) {
		return latestTrack + "/" + channel
	}
	return channel
}

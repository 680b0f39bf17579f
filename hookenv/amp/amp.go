// Package amp is the codec of AMP boxes (Twisted's Asynchronous Messaging
// Protocol) on byte slices: a box is a list of pairs, each a key and a value
// with a 16-bit big-endian length before it, and an empty key ends it.
//
// It knows no commands, no sockets and no deadlines. The thin client links it
// into a process that lives for two milliseconds, so it imports strconv only.
// hookenv/client and hookenv/server import it.
package amp

import "strconv"

const (
	// MaxKey is the length of the longest key.
	MaxKey = 255
	// MaxValue is the length of the longest value of one pair. A longer one
	// travels in chunks: "value", "value.1", "value.2" and so on, all but the
	// last MaxValue long.
	MaxValue = 65535
)

// Append adds a pair to the box that is being built in dst, in chunks if it
// must. It panics if the key is empty or longer than MaxKey with its suffix:
// keys are the program's own words.
func Append(dst []byte, key, value string) []byte {
	dst = appendPair(dst, key, value[:min(len(value), MaxValue)])
	for i := 1; len(value) > MaxValue; i++ {
		value = value[MaxValue:]
		dst = appendPair(dst, ChunkKey(key, i), value[:min(len(value), MaxValue)])
	}
	return dst
}

// End ends the box that is being built in dst.
func End(dst []byte) []byte { return append(dst, 0, 0) }

func appendPair(dst []byte, key, value string) []byte {
	if key == "" || len(key) > MaxKey {
		panic("internal error: no AMP key: " + strconv.Quote(key))
	}
	dst = append(dst, 0, byte(len(key)))
	dst = append(dst, key...)
	dst = append(dst, byte(len(value)>>8), byte(len(value)))
	return append(dst, value...)
}

// ChunkKey returns the key of a value's i-th chunk, counted from 0.
func ChunkKey(key string, i int) string {
	if i == 0 {
		return key
	}
	return key + "." + strconv.Itoa(i)
}

// Box is a decoded box, pair by pair as it came.
type Box map[string]string

// Has reports whether the box has such a key.
func (b Box) Has(key string) bool {
	_, ok := b[key]
	return ok
}

// Value returns a key's value, its chunks joined whatever their lengths: other
// clients may cut elsewhere. Empty if there is no such key.
func (b Box) Value(key string) string {
	value, ok := b[key]
	if !ok || !b.Has(ChunkKey(key, 1)) {
		return value
	}
	chunks, size := 0, 0
	for ; b.Has(ChunkKey(key, chunks)); chunks++ {
		size += len(b[ChunkKey(key, chunks)])
	}
	joined := make([]byte, 0, size)
	for i := range chunks {
		joined = append(joined, b[ChunkKey(key, i)]...)
	}
	return string(joined)
}

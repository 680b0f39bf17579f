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
	// MaxValue is the length of the longest value of one pair. A longer one travels in chunks:
	// "value", "value.1", "value.2" and so on, all but the last MaxValue long.
	MaxValue = 65535
)

// Append adds a pair to the box that is being built in dst, in chunks if it must. It panics if the
// key is empty or longer than MaxKey with its suffix: keys are the program's own words.
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

// appendPair appends a key and its value, each behind its length in two bytes.
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

// Value returns a key's value; empty if there is no such key. It joins a value's chunks, which other
// clients may cut at lengths of their own.
func (b Box) Value(key string) string {
	value, ok := b[key]
	if !ok || !b.Has(ChunkKey(key, 1)) {
		return value
	}

	chunks := 0
	size := 0
	for ; b.Has(ChunkKey(key, chunks)); chunks++ {
		size += len(b[ChunkKey(key, chunks)])
	}
	joined := make([]byte, 0, size)
	for i := range chunks {
		joined = append(joined, b[ChunkKey(key, i)]...)
	}

	return string(joined)
}

// Error says what is wrong with the bytes that came. A decoder that has returned one has lost its
// place; the connection can only be closed.
type Error string

func (e Error) Error() string { return string(e) }

// The errors of a Decoder.
const (
	ErrTooLarge  = Error("box is too large")
	ErrKeyLength = Error("key is longer than 255 bytes")
	ErrDuplicate = Error("key stands twice in one box")
	ErrEmpty     = Error("box is empty")
)

// maxPairs limits a box: 16 MiB in pieces of a kilobyte. A pair costs ten times its size here, so
// that Limit alone would not do.
const maxPairs = 1 << 14

// Decoder takes bytes as they come and gives boxes, or their pairs, as they are
// complete. The zero value refuses every box; set Limit.
type Decoder struct {
	// Limit is the size in bytes that a box may have on the wire, its lengths
	// and its end included. It may be changed between boxes.
	Limit int

	buf  []byte
	at   int // where in buf the undecoded bytes begin
	box  Box // the pairs of the box in work
	size int // their size on the wire
}

// Feed takes more bytes, which it copies.
func (d *Decoder) Feed(p []byte) {
	d.buf = append(d.buf[:0], d.buf[d.at:]...)
	d.buf = append(d.buf, p...)
	d.at = 0
}

// Pending reports whether a box has begun and not ended.
func (d *Decoder) Pending() bool { return d.size > 0 || len(d.buf) > d.at }

// Next returns the next box, or nil if more bytes are needed.
func (d *Decoder) Next() (Box, error) {
	for {
		key, value, err := d.Pair()
		switch {
		case key == nil || err != nil:
			return nil, err
		case len(key) == 0:
			return d.takeBox()
		case len(d.box) == maxPairs:
			return nil, ErrTooLarge
		case d.box == nil:
			d.box = Box{}
		case d.box.Has(string(key)):
			return nil, ErrDuplicate
		}
		d.box[string(key)] = string(value)
	}
}

// Pair returns the next pair of a box, an empty key at the box's end, or a nil key if more bytes
// are needed. Both are valid until the next Feed. It is for callers that cannot hold a whole box,
// and does not look for keys that stand twice.
func (d *Decoder) Pair() (key, value []byte, err error) {
	k, err := d.readField(d.at, MaxKey)
	if !k.whole || err != nil {
		return nil, nil, err
	}
	if len(k.bytes) == 0 {
		d.at = k.end
		d.size = 0
		return k.bytes, nil, nil
	}

	v, err := d.readField(k.end, MaxValue)
	if !v.whole || err != nil {
		return nil, nil, err
	}

	d.size += 4 + len(k.bytes) + len(v.bytes)
	if d.size+2 > d.Limit {
		return nil, nil, ErrTooLarge
	}

	d.at = v.end
	return k.bytes, v.bytes, nil
}

// field is a length and as many bytes behind it.
type field struct {
	bytes []byte
	end   int  // the offset behind it
	whole bool // all of it is here
}

// readField reads the key or value at the offset. The result is not whole if more bytes must come.
func (d *Decoder) readField(at, limit int) (field, error) {
	if len(d.buf) < at+2 {
		return field{}, nil
	}

	n := int(d.buf[at])<<8 | int(d.buf[at+1])
	if n > limit {
		return field{}, ErrKeyLength
	}
	if d.size+2+n > d.Limit {
		return field{}, ErrTooLarge
	}

	end := at + 2 + n
	if len(d.buf) < end {
		return field{}, nil
	}

	return field{bytes: d.buf[at+2 : end], end: end, whole: true}, nil
}

func (d *Decoder) takeBox() (Box, error) {
	box := d.box
	d.box = nil
	if box == nil {
		return nil, ErrEmpty
	}
	return box, nil
}

// Package amp encodes and decodes the boxes of AMP, Twisted's Asynchronous Messaging Protocol. A box is a list of
// pairs of a key and a value. A 16-bit big-endian length precedes each key and value, and an empty key ends the box.
//
// The package does not handle commands, sockets or deadlines. It imports only strconv. The thin client runs for
// only about two milliseconds, and every import delays its start.
package amp

import "strconv"

const (
	// MaxKey is the length of the longest key, in bytes.
	MaxKey = 255
	// MaxValue is the length of the longest value of one pair, in bytes. A longer value is sent in chunks, with
	// keys such as "value", "value.1" and "value.2". All chunks except the last have MaxValue bytes.
	MaxValue = 65535
)

// Append appends a pair to a box in dst, in chunks if the value is too long for one pair. It panics if the key is
// empty, or if the key of a chunk would be longer than MaxKey.
func Append(dst []byte, key, value string) []byte {
	dst = appendPair(dst, key, value[:min(len(value), MaxValue)])
	for i := 1; len(value) > MaxValue; i++ {
		value = value[MaxValue:]
		dst = appendPair(dst, ChunkKey(key, i), value[:min(len(value), MaxValue)])
	}
	return dst
}

// End appends the end of a box to dst.
func End(dst []byte) []byte { return append(dst, 0, 0) }

// appendPair appends a key and its value, each preceded by its length in two bytes. It panics if the key is empty or
// longer than MaxKey. The value must not be longer than MaxValue.
func appendPair(dst []byte, key, value string) []byte {
	if key == "" || len(key) > MaxKey {
		panic("internal error: invalid AMP key: " + strconv.Quote(key))
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

// Box is a decoded box. The chunks of a long value are separate pairs, as they were sent.
type Box map[string]string

// Has reports whether the box has the key.
func (b Box) Has(key string) bool {
	_, ok := b[key]
	return ok
}

// Value returns the value of a key, or an empty string if the box does not have the key. It joins the chunks
// of a long value. Chunks may have any length, since other clients may split values differently.
func (b Box) Value(key string) string {
	value, ok := b[key]
	if !ok || !b.Has(ChunkKey(key, 1)) {
		return value
	}

	// Measure the chunks first, so that joined does not have to grow.
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

// Error describes an error in the received bytes. After such an error the decoder cannot find the next box,
// so the connection must be closed.
type Error string

func (e Error) Error() string { return string(e) }

// The errors of a Decoder.
const (
	ErrTooLarge  = Error("box is too large")
	ErrKeyLength = Error("key is longer than 255 bytes")
	ErrDuplicate = Error("a key appears twice in one box")
	ErrEmpty     = Error("box is empty")
)

// maxPairs limits the number of pairs in a box. The limit of a box's size is not enough, since a short pair needs
// ten times its encoded size in memory. maxPairs allows a value of 16 MiB in chunks of one KiB.
const maxPairs = 1 << 14

// Decoder decodes boxes, or their pairs, from bytes that arrive in pieces. The zero value refuses every box,
// so Limit must be set.
type Decoder struct {
	// Limit is the maximum size of a box in bytes, including its lengths and its end. It can change between
	// boxes.
	Limit int

	buf  []byte
	at   int // where the undecoded bytes begin in buf
	box  Box // the pairs so far of the current box
	size int // the size of the pairs so far, as sent
}

// Feed adds received bytes, which it copies.
func (d *Decoder) Feed(p []byte) {
	d.buf = append(d.buf[:0], d.buf[d.at:]...)
	d.buf = append(d.buf, p...)
	d.at = 0
}

// Pending reports whether a box has begun and is not complete.
func (d *Decoder) Pending() bool { return d.size > 0 || len(d.buf) > d.at }

// Next returns the next box, or nil if more bytes are needed. It returns an [Error] for a box that is malformed or
// too large.
func (d *Decoder) Next() (Box, error) {
	for {
		key, value, err := d.Pair()
		if err != nil {
			return nil, err
		}
		if key == nil {
			return nil, nil
		}
		if len(key) == 0 {
			return d.takeBox()
		}

		if len(d.box) == maxPairs {
			return nil, ErrTooLarge
		}
		if d.box.Has(string(key)) {
			return nil, ErrDuplicate
		}

		if d.box == nil {
			d.box = Box{}
		}
		d.box[string(key)] = string(value)
	}
}

// Pair returns the next pair of a box, an empty key at the box's end, or a nil key if more bytes are needed. Key and
// value are valid until the next Feed. Pair is for callers that cannot hold a whole box. It returns an [Error] for a key
// that is too long, or a box that is larger than Limit. Unlike Next, it does not refuse an empty box, duplicate keys or
// too many pairs.
func (d *Decoder) Pair() (key, value []byte, err error) {
	keyField, err := d.readField(d.at, MaxKey)
	if err != nil {
		return nil, nil, err
	}
	if !keyField.whole {
		return nil, nil, nil
	}
	if len(keyField.bytes) == 0 {
		d.at = keyField.end
		d.size = 0
		return keyField.bytes, nil, nil
	}

	// The key stays undecoded until the whole value has arrived.
	valueField, err := d.readField(keyField.end, MaxValue)
	if err != nil {
		return nil, nil, err
	}
	if !valueField.whole {
		return nil, nil, nil
	}

	d.size += 4 + len(keyField.bytes) + len(valueField.bytes) // with two lengths of two bytes
	if d.size+2 > d.Limit {                                   // the box's end has two bytes
		return nil, nil, ErrTooLarge
	}

	d.at = valueField.end
	return keyField.bytes, valueField.bytes, nil
}

// field is a key or a value.
type field struct {
	bytes []byte
	end   int  // the offset of the next field
	whole bool // all bytes of the field were received
}

// readField reads the key or value at the offset. The result is not whole if more bytes are needed. limit is the
// maximum length of the field. It returns an error if the field is longer, or exceeds the box's Limit.
func (d *Decoder) readField(at, limit int) (field, error) {
	if len(d.buf) < at+2 {
		return field{}, nil
	}

	n := int(d.buf[at])<<8 | int(d.buf[at+1])
	if n > limit {
		// This is a key. A length of two bytes cannot exceed MaxValue.
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

// takeBox returns the pairs of the current box, and starts a new one. It returns ErrEmpty if the box has no pairs.
func (d *Decoder) takeBox() (Box, error) {
	box := d.box
	d.box = nil
	if box == nil {
		return nil, ErrEmpty
	}
	return box, nil
}

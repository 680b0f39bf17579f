package amp

// Error is what is wrong with the bytes that came. A decoder that has returned
// one has lost its place; the connection can only be closed.
type Error string

func (e Error) Error() string { return string(e) }

// The errors of a Decoder.
const (
	ErrTooLarge  = Error("box is too large")
	ErrKeyLength = Error("key is longer than 255 bytes")
	ErrDuplicate = Error("key stands twice in one box")
	ErrEmpty     = Error("box is empty")
)

// Decoder takes bytes as they come and gives boxes as they are complete. The
// zero value refuses every box; set Limit.
type Decoder struct {
	// Limit is the size in bytes that a box may have on the wire, its lengths
	// and its end included. It may be changed between boxes.
	Limit int

	buf  []byte // not yet decoded
	box  Box    // the pairs of the box in work
	size int    // their size on the wire
}

// Feed takes more bytes, which it copies.
func (d *Decoder) Feed(p []byte) { d.buf = append(d.buf, p...) }

// Pending says whether a box has begun and not ended: some of its bytes are
// here, the rest is owed.
func (d *Decoder) Pending() bool { return d.size > 0 || len(d.buf) > 0 }

// Next returns the next box, or nil if more bytes are needed.
func (d *Decoder) Next() (Box, error) {
	used := 0
	defer func() { d.drop(used) }()
	for {
		key, err := d.field(used, MaxKey)
		if !key.whole || err != nil {
			return nil, err
		}
		if len(key.bytes) == 0 {
			used = key.end
			return d.finish()
		}
		value, err := d.field(key.end, MaxValue)
		if !value.whole || err != nil {
			return nil, err
		}
		if err := d.add(string(key.bytes), string(value.bytes)); err != nil {
			return nil, err
		}
		used = value.end
	}
}

// field is a length and as many bytes behind it.
type field struct {
	bytes []byte
	end   int  // the offset behind it
	whole bool // all of it is here
}

func (d *Decoder) field(at, limit int) (field, error) {
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

func (d *Decoder) add(key, value string) error {
	if d.box == nil {
		d.box = Box{}
	}
	if d.box.Has(key) {
		return ErrDuplicate
	}
	d.size += 4 + len(key) + len(value)
	if d.size+2 > d.Limit {
		return ErrTooLarge
	}
	d.box[key] = value
	return nil
}

func (d *Decoder) finish() (Box, error) {
	box := d.box
	d.box, d.size = nil, 0
	if box == nil {
		return nil, ErrEmpty
	}
	return box, nil
}

// drop forgets decoded bytes, and their memory once all are.
func (d *Decoder) drop(n int) {
	if n == len(d.buf) {
		d.buf = d.buf[:0]
		return
	}
	if n > 0 {
		d.buf = append(d.buf[:0], d.buf[n:]...)
	}
}

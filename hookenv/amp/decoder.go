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
		key, rest, ok, err := d.field(used, MaxKey)
		if !ok || err != nil {
			return nil, err
		}
		if len(key) == 0 {
			used = rest
			return d.finish()
		}
		value, rest, ok, err := d.field(rest, MaxValue)
		if !ok || err != nil {
			return nil, err
		}
		if err := d.add(string(key), string(value)); err != nil {
			return nil, err
		}
		used = rest
	}
}

// field reads a length and as many bytes at an offset, and returns the offset
// behind them; ok is false if they are not all here yet.
func (d *Decoder) field(at, limit int) (p []byte, rest int, ok bool, err error) {
	if len(d.buf) < at+2 {
		return nil, at, false, nil
	}
	n := int(d.buf[at])<<8 | int(d.buf[at+1])
	if n > limit {
		return nil, at, false, ErrKeyLength
	}
	if d.size+2+n > d.Limit {
		return nil, at, false, ErrTooLarge
	}
	if len(d.buf) < at+2+n {
		return nil, at, false, nil
	}
	return d.buf[at+2 : at+2+n], at + 2 + n, true, nil
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

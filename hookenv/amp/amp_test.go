package amp_test

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/hookenv/amp"
)

// decode passes bytes to a decoder in pieces of piece bytes, and returns all boxes.
func decode(wire []byte, piece, limit int) ([]amp.Box, error) {
	d := amp.Decoder{Limit: limit}
	var boxes []amp.Box
	for len(wire) > 0 {
		n := min(piece, len(wire))
		d.Feed(wire[:n])
		wire = wire[n:]
		for {
			box, err := d.Next()
			if err != nil {
				return boxes, err
			}
			if box == nil {
				break
			}
			boxes = append(boxes, box)
		}
	}
	return boxes, nil
}

func TestWireForm(t *testing.T) {
	got := amp.End(amp.Append(amp.Append(nil, "_command", "get"), "k", ""))
	want := "\x00\x08_command\x00\x03get\x00\x01k\x00\x00\x00\x00"
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBoxesArriveInAnyPieces(t *testing.T) {
	wire := amp.End(amp.Append(amp.Append(nil, "a", "1"), "b", "22"))
	wire = amp.End(amp.Append(wire, "c", strings.Repeat("x", 300)))
	want := []amp.Box{{"a": "1", "b": "22"}, {"c": strings.Repeat("x", 300)}}
	for _, piece := range []int{1, 2, 3, 7, 100, len(wire)} {
		got, err := decode(wire, piece, 1000)
		if err != nil {
			t.Fatalf("pieces of %d: %v", piece, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pieces of %d (-want +got):\n%s", piece, diff)
		}
	}
}

func TestLongValuesTravelInChunks(t *testing.T) {
	for _, size := range []int{0, 1, amp.MaxValue - 1, amp.MaxValue, amp.MaxValue + 1, 2 * amp.MaxValue, 1 << 20} {
		value := strings.Repeat("0123456789", size/10+1)[:size]
		got, err := decode(amp.End(amp.Append(nil, "value", value)), 1<<16, 1<<21)
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if got[0].Value("value") != value {
			t.Errorf("%d bytes changed on their way", size)
		}
		if chunks := (size + amp.MaxValue - 1) / amp.MaxValue; len(got[0]) != max(chunks, 1) {
			t.Errorf("%d bytes travel in %d pairs, want %d", size, len(got[0]), max(chunks, 1))
		}
	}
}

func TestChunksOfAnyLengthAreJoined(t *testing.T) {
	for _, tt := range []struct {
		box  amp.Box
		want string
	}{
		{amp.Box{"value": "a", "value.1": "", "value.2": "bc"}, "abc"},
		{amp.Box{"value": "", "value.1": "b"}, "b"},
		{amp.Box{"value": "a", "value.2": "c"}, "a"},
		{amp.Box{"value.1": "b"}, ""},
	} {
		if got := tt.box.Value("value"); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.box, got, tt.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name, wire string
		limit      int
		want       error
	}{
		{"a long key", "\x01\x00", 1000, amp.ErrKeyLength},
		{"a large value", "\x00\x01k\xff\xff", 1000, amp.ErrTooLarge},
		{"many small pairs", strings.Repeat("\x00\x01k\x00\x00", 1) + "\x00\x01l\x00\x00\x00\x01m\x00\x00", 12, amp.ErrTooLarge},
		{"a key twice", "\x00\x01k\x00\x00\x00\x01k\x00\x00\x00\x00", 1000, amp.ErrDuplicate},
		{"an empty box", "\x00\x00", 1000, amp.ErrEmpty},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := decode([]byte(tt.wire), 1, tt.limit); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestBoxesOfVeryManyPairs(t *testing.T) {
	for pairs, want := range map[int]error{1 << 14: nil, 1<<14 + 1: amp.ErrTooLarge} {
		var wire []byte
		for i := range pairs {
			wire = amp.Append(wire, strconv.Itoa(i), "")
		}
		if _, err := decode(amp.End(wire), 1000, 1<<20); !errors.Is(err, want) {
			t.Errorf("%d pairs: got %v, want %v", pairs, err, want)
		}
	}
}

func TestPending(t *testing.T) {
	d := amp.Decoder{Limit: 100}
	if d.Pending() {
		t.Error("a fresh decoder owes nothing")
	}
	d.Feed([]byte("\x00\x01k\x00\x00"))
	if box, err := d.Next(); box != nil || err != nil || !d.Pending() {
		t.Errorf("a box has begun: got %v, %v, %v", box, err, d.Pending())
	}
	d.Feed([]byte("\x00\x00"))
	if box, err := d.Next(); box == nil || err != nil || d.Pending() {
		t.Errorf("the box is complete: got %v, %v, %v", box, err, d.Pending())
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add(amp.End(amp.Append(amp.Append(nil, "a", "1"), "b", "22")), 3)
	f.Add([]byte("\x00\x01k\xff\xff"), 1)
	f.Fuzz(func(t *testing.T, wire []byte, piece int) {
		whole, wholeErr := decode(wire, len(wire)+1, 1<<20)
		parts, partsErr := decode(wire, max(1, piece), 1<<20)
		if !slices.EqualFunc(whole, parts, maps.Equal[amp.Box, amp.Box]) || !errors.Is(partsErr, wholeErr) {
			t.Fatalf("pieces matter: %v, %v\n%q\n%q", wholeErr, partsErr, whole, parts)
		}
		for _, box := range whole {
			var again []byte
			for key, value := range box {
				again = amp.Append(again, key, value)
			}
			got, err := decode(amp.End(again), 1000, 1<<21)
			if err != nil || len(got) != 1 || !maps.Equal(box, got[0]) {
				t.Fatalf("a box is not the same again: %v, %v", box, err)
			}
			if !bytes.Contains(wire, []byte{0, 0}) {
				t.Fatal("a box without its end")
			}
		}
	})
}

package record

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestShorten checks that a shortened text never exceeds the limit in JSON, and that a text that fits is
// unchanged.
func TestShorten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", "é", "\u2028", "<", "\"", "\\", "\x00", "\x7f", "\xff", "😀", "\n", " "}
	for range 2000 {
		var b strings.Builder
		for range r.IntN(400) {
			b.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		text, limit := b.String(), 40+r.IntN(600)
		got := Shorten(text, limit)
		if size := encodedSize(got) - len(`""`); size > limit {
			t.Fatalf("%d bytes of JSON, at most %d are allowed: %q", size, limit, got)
		}

		whole, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if fits := 6*len([]rune(text)) <= limit || strings.Trim(text, "a") == "" && len(whole)-2 <= limit; fits && got != text {
			t.Fatalf("%q has become %q", text, got)
		}
	}
	if got := Shorten(strings.Repeat("a", 100), 60); !strings.HasPrefix(got, "aaa") || !strings.HasSuffix(got, " bytes more)") {
		t.Errorf("it does not say that something is left out: %q", got)
	}
}

func TestListSomeServers(t *testing.T) {
	var many []int
	for lrn := range 25 {
		many = append(many, lrn)
	}
	for want, lrns := range map[string][]int{
		"":            {},
		"3":           {3},
		"1, 2 and 10": {10, 2, 1},
		"0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 and 5 more": many,
	} {
		t.Run(want, func(t *testing.T) {
			if got := ListSomeServers(lrns); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestJoinReasons checks the text about the reasons of many servers.
func TestJoinReasons(t *testing.T) {
	for want, all := range map[string][]Reason{
		"":                         nil,
		"server 2, step a: broken": {{2, "step a", "broken"}},
		"server 2: broken":         {{2, "", "broken"}},
		"server 1: x; the same on server 3 and 4; server 2: y": {{1, "", "x"}, {2, "", "y"}, {3, "", "x"}, {4, "", "x"}},
		"server 1: a; server 2: b; server 3: c; and 3 more servers for other reasons, which neco status shows: 4, 5 and 6": {
			{1, "", "a"}, {2, "", "b"}, {3, "", "c"}, {4, "", "d"}, {5, "", "d"}, {6, "", "e"},
		},
	} {
		t.Run(want, func(t *testing.T) {
			if got := JoinReasons(all, 1000); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

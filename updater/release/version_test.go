package release

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseVersion(t *testing.T) {
	for _, s := range []string{"1", "1.2.3-1", "2018.11.07-1", "0", "1.2", "1-0", "99999999999999999999999.1"} {
		if v, err := ParseVersion(s); err != nil || v.String() != s {
			t.Errorf("%q: %v, %v", s, v, err)
		}
	}
	for _, s := range []string{"", "v1.2", "1.", ".1", "1..2", "1-", "-1", "1-1-1", "1.2.3-rc1", "1 ", "1\n", "１", "1." + strings.Repeat("1", 64)} {
		if v, err := ParseVersion(s); err == nil {
			t.Errorf("%q was read as %v", s, v)
		}
	}
}

// TestOrder checks that versions are sorted in the order of their releases.
func TestOrder(t *testing.T) {
	want := []string{"1", "1-0", "1-1", "1-2", "1-10", "1.0", "1.2.3-1", "1.2.3-2", "1.2.3-10", "1.2.10-1", "1.10.0", "2", "2018.11.07-1", "2018.11.10-1", "2018.12.1", "99999999999999999999999"}
	got := slices.Clone(want)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, func(a, b string) int { return parseOrZero(a).Compare(parseOrZero(b)) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNewerAndSame(t *testing.T) {
	tests := []struct {
		a, b        string
		newer, same bool
	}{
		{"1.2.3-2", "1.2.3-1", true, false},
		{"1.2.3-1", "1.2.3-1", false, true},
		{"2018.9.30-1", "2018.11.07-1", false, false}, // 9 comes before 11
		{"1.07", "1.7", false, true},
		{"1", "", true, false},
		{"", "", false, true},
		{"", "1", false, false},
		{"broken", "1", false, false},
		{"1", "broken", true, false},
		{"broken", "torn", false, false},
	}
	for _, tt := range tests {
		if newer, same := Newer(tt.a, tt.b), Same(tt.a, tt.b); newer != tt.newer || same != tt.same {
			t.Errorf("%q and %q: newer %t, same %t", tt.a, tt.b, newer, same)
		}
	}
}

// TestOrderIsTotal checks the laws of a total order with random versions, many of which are close to each
// other.
func TestOrderIsTotal(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		checkOrder(t, randomVersion(r), randomVersion(r), randomVersion(r))
		if t.Failed() {
			return
		}
	}
}

// checkOrder checks the laws of a total order on three versions.
func checkOrder(t *testing.T, a, b, c Version) {
	t.Helper()
	if a.Compare(a) != 0 {
		t.Errorf("%s is not %s", a, a)
	}
	if sign(a.Compare(b)) != -sign(b.Compare(a)) {
		t.Errorf("%s and %s: %d one way, %d the other", a, b, a.Compare(b), b.Compare(a))
	}
	if a.Compare(b) <= 0 && b.Compare(c) <= 0 && a.Compare(c) > 0 {
		t.Errorf("%s <= %s <= %s, but the first is after the last", a, b, c)
	}
	if a.Compare(b) == 0 && sign(a.Compare(c)) != sign(b.Compare(c)) {
		t.Errorf("%s and %s are the same, but not to %s", a, b, c)
	}
	if a.Compare(Version{}) <= 0 {
		t.Errorf("%s is not newer than none", a)
	}
}

func sign(n int) int { return min(1, max(-1, n)) }

func randomVersion(r *rand.Rand) Version {
	parts := make([]string, 1+r.IntN(3))
	for i := range parts {
		parts[i] = strings.Repeat("0", r.IntN(2)) + strconv.Itoa(r.IntN(12))
	}
	s := strings.Join(parts, ".")
	if r.IntN(2) == 0 {
		s += "-" + strconv.Itoa(r.IntN(12))
	}
	return parseOrZero(s)
}

func FuzzVersion(f *testing.F) {
	f.Add("1.2.3-1", "1.2.3-10", "2018.11.07-1")
	f.Add("1", "01", "1-0")
	f.Add("", "-", "1.")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for _, s := range []string{a, b, c} {
			v, err := ParseVersion(s)
			if err != nil && v != (Version{}) || err == nil && v.String() != s {
				t.Errorf("%q: %q, %v", s, v, err)
			}
			if err != nil {
				return
			}
		}
		checkOrder(t, parseOrZero(a), parseOrZero(b), parseOrZero(c))
	})
}

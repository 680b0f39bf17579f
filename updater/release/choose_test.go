package release

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTag(t *testing.T) {
	tests := []struct{ tag, prefix, version string }{
		{"release-2018.11.07-1", "release", "2018.11.07-1"},
		{"test-1.2.3", "test", "1.2.3"},
		{"v1.2.3", "", ""},            // no hyphen
		{"release", "", ""},           //
		{"-1.2.3", "", ""},            // no prefix
		{"release-", "", ""},          // no version
		{"release-v1.2", "", ""},      //
		{"my-release-1.2-1", "", ""},  // the prefix ends at the first hyphen
		{"release-1.2.3-rc1", "", ""}, //
		{"release-1.2\n", "", ""},     //
	}
	for _, tt := range tests {
		prefix, v, err := ParseTag(tt.tag)
		if prefix != tt.prefix || v.String() != tt.version || (err == nil) != (tt.version != "") {
			t.Errorf("%q: %q, %q, %v", tt.tag, prefix, v, err)
		}
	}
}

func FuzzTag(f *testing.F) {
	f.Add("release-2018.11.07-1")
	f.Add("-1")
	f.Fuzz(func(t *testing.T, tag string) {
		prefix, v, err := ParseTag(tag)
		if err == nil && (prefix+"-"+v.String() != tag || strings.Contains(prefix, "-")) {
			t.Errorf("%q was read as %q and %q", tag, prefix, v)
		}
	})
}

// published returns the releases of a repository. The newest by date is not the newest version.
func published() []Release {
	return []Release{
		{Tag: "release-2018.11.10-1"},
		{Tag: "release-2018.9.30-1"},
		{Tag: "test-2018.11.12-1", PreRelease: true},
		{Tag: "release-2018.12.1-1", Draft: true},
		{Tag: "release-2018.11.9-2"},
		{Tag: "nightly"},
		{Tag: "release-2018.13.1-1-rc2"},
	}
}

func TestChoose(t *testing.T) {
	tests := []struct{ env, prefix, want string }{
		{"production", "", "release-2018.11.10-1"},
		{"staging", "", "test-2018.11.12-1"},
		{"staging", "release", "release-2018.11.10-1"},
		{"production", "test", ""}, // only a pre-release has this prefix
		{"none", "", ""},
		{"", "", ""},
	}
	for _, tt := range tests {
		for seed := range uint64(20) {
			all := published()
			rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			if got, ok := Choose(tt.env, tt.prefix, all); got.Release.Tag != tt.want || ok != (tt.want != "") {
				t.Errorf("%s %q: %q, %t, want %q", tt.env, tt.prefix, got.Release.Tag, ok, tt.want)
			}
		}
	}
}

// TestChooseSameVersion checks that the choice between tags of one version does not depend on their
// order.
func TestChooseSameVersion(t *testing.T) {
	a, b, c := Release{Tag: "a-1.2-1", PreRelease: true}, Release{Tag: "c-1.2-1"}, Release{Tag: "b-1.02-1"}
	for _, all := range [][]Release{{a, b, c}, {c, b, a}, {b, a, c}} {
		if got, _ := Choose("staging", "", all); got.Release.Tag != "b-1.02-1" {
			t.Errorf("got %q", got.Release.Tag)
		}
	}
}

// TestComplete checks that an incomplete release is skipped, and reported if it would have been chosen.
func TestComplete(t *testing.T) {
	sums := []Asset{{Name: SumsFile}}
	whole, half := Release{Tag: "r-1.2-1", Assets: sums}, Release{Tag: "r-1.3-1", Assets: []Asset{{Name: "neco_1.3-1_amd64.deb"}}}
	for _, tt := range []struct {
		all    []Release
		want   string
		lacks  bool
		reason string
	}{
		{[]Release{whole, half}, "r-1.2-1", true, `"r-1.3-1" lacks SHA256SUMS`},
		{[]Release{half, {Tag: "r-1.4-1", Assets: sums}, whole}, "r-1.4-1", false, ""},
		{[]Release{{Tag: "r-1.4-1", Draft: true}, whole}, "r-1.2-1", false, ""},
		{[]Release{half}, "", true, "r-1.3-1"},
	} {
		left, err := filterComplete("production", "", tt.all)
		best, _ := Choose("production", "", left)
		if best.Release.Tag != tt.want || errors.Is(err, ErrIncomplete) != tt.lacks || err != nil && !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%v: %q, %v", tt.all, best.Release.Tag, err)
		}
	}
}

func TestAssetName(t *testing.T) {
	v := parseOrZero("2018.11.07-1")
	if diff := cmp.Diff("neco_2018.11.07-1_amd64.deb", AssetName(Deb, v, "amd64")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("bijou_2018.11.07-1_linux_arm64.tar.gz", AssetName(Tarball, v, "arm64")); diff != "" {
		t.Error(diff)
	}
}

// TestFindAmongMany checks that a release can have more than one asset. The original neco failed if there
// was a second one.
func TestFindAmongMany(t *testing.T) {
	r := Release{Tag: "release-1.2-1", Assets: []Asset{
		{Name: "neco-operation-cli_1.2-1_amd64.deb"}, {Name: "neco_1.2-1_arm64.deb"}, {Name: "neco_1.2-1_amd64.deb", Size: 7}, {Name: "SHA256SUMS"},
	}}
	got, err := r.Find(AssetName(Deb, parseOrZero("1.2-1"), "amd64"))
	if diff := cmp.Diff(Asset{Name: "neco_1.2-1_amd64.deb", Size: 7}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := r.Find("neco_1.2-2_amd64.deb"); err == nil || !strings.Contains(err.Error(), "it has: neco-operation-cli_1.2-1_amd64.deb, ") {
		t.Errorf("an asset that is not there: %v", err)
	}
	r.Assets = append(r.Assets, Asset{Name: "SHA256SUMS"})
	if _, err := r.Find("SHA256SUMS"); err == nil || !strings.Contains(err.Error(), "2 assets") {
		t.Errorf("an asset that is there twice: %v", err)
	}
}

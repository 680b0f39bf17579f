package charmsource_test

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state/charmsource"
	"bijou/testscripts/fakes/charmhub"
)

func ubuntu(version, arch string) charmhub.Base {
	return charmhub.Base{Architecture: arch, Name: "ubuntu", Channel: version}
}

// newStore returns a store with a bundle and two charms. The default track of one charm is not latest, and
// the other charm is only for another architecture.
func newStore(t *testing.T) *charmhub.Server {
	t.Helper()
	s := charmhub.New()
	t.Cleanup(s.Close)

	s.Publish(charmhub.Charm{
		Name: "db", Summary: "A database", Publisher: "Canonical", DefaultTrack: "14",
		Revisions: []charmhub.Revision{
			{Number: 7, Bytes: []byte("seven"), Bases: []charmhub.Base{ubuntu("22.04", "amd64")}, Metadata: "name: db\n", Config: "{}"},
			{Number: 8, Bytes: []byte("eight"), Bases: []charmhub.Base{ubuntu("24.04", "amd64")}, Metadata: "name: db\n"},
			{Number: 9, Bytes: []byte("nine"), Bases: []charmhub.Base{ubuntu("24.10", "amd64")}, Metadata: "name: db\n"},
		},
		Releases: []charmhub.Release{
			{Track: "16", Risk: "edge", Base: ubuntu("24.10", "amd64"), Revision: 9},
			{Track: "14", Risk: "stable", Base: ubuntu("22.04", "amd64"), Revision: 7, Resources: map[string]int{"site": 1}},
			{Track: "14", Risk: "stable", Base: ubuntu("24.10", "amd64"), Revision: 9},
			{Track: "14", Risk: "stable", Base: ubuntu("24.04", "amd64"), Revision: 8},
			{Track: "14", Risk: "stable", Base: ubuntu("24.04", "arm64"), Revision: 9},
		},
		Resources: map[string]charmhub.Resource{
			"site": {Type: "file", Filename: "site.zip", Revisions: [][]byte{[]byte("one"), []byte("two"), []byte("three")}},
		},
	})
	s.Publish(charmhub.Charm{
		Type: "bundle", Name: "both", Revisions: []charmhub.Revision{{Number: 3, Bytes: []byte("zip")}},
		Releases: []charmhub.Release{{Track: "latest", Risk: "stable", Base: charmhub.Base{Architecture: "all", Name: "all", Channel: "all"}, Revision: 3}},
	})
	return s
}

// client records waits instead of waiting.
type client struct {
	*charmsource.Charmhub
	waits *[]time.Duration
	notes *[]string
}

func newClient(t *testing.T, s *charmhub.Server) client {
	t.Helper()
	waits, notes := &[]time.Duration{}, &[]string{}
	c, err := charmsource.NewCharmhub(charmsource.Options{
		URL: s.URL() + "/", Version: "1.2.3",
		Notify: func(text string) { *notes = append(*notes, text) },
		Sleep: func(_ context.Context, d time.Duration) error {
			*waits = append(*waits, d)
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client{c, waits, notes}
}

func amd64(w charmsource.Wish) charmsource.Wish {
	w.Arch = "amd64"
	return w
}

func TestResolve(t *testing.T) {
	jammy, noble := charmsource.Base{Name: "ubuntu", Version: "22.04"}, charmsource.Base{Name: "ubuntu", Version: "24.04"}
	bookworm := charmsource.Base{Name: "debian", Version: "12"}
	for _, tt := range []struct {
		name     string
		wish     charmsource.Wish
		want     string // revision, channel, base
		requests int
		err      string
	}{
		{"the default track", charmsource.Wish{Name: "db", Base: jammy}, "7 14/stable ubuntu@22.04", 1, ""},
		{"any base: an LTS before a newer one", charmsource.Wish{Name: "db"}, "8 14/stable ubuntu@24.04", 2, ""},
		{"another base", charmsource.Wish{Name: "db", Base: bookworm, OrOther: true}, "8 14/stable ubuntu@24.04", 3, ""},
		{"no other base unasked", charmsource.Wish{Name: "db", Base: bookworm}, "", 1,
			`charm "db" has no release in channel "stable" for debian@12 on amd64; there are 16/edge (ubuntu@24.10), 14/stable (ubuntu@22.04), 14/stable (ubuntu@24.10), 14/stable (ubuntu@24.04)`},
		{"a closed channel", charmsource.Wish{Name: "db", Channel: "14/edge", Base: noble}, "8 14/stable ubuntu@24.04", 1, ""},
		{"by revision", charmsource.Wish{Name: "db", Revision: 7}, "7  @", 1, ""},
		{"no such revision", charmsource.Wish{Name: "db", Revision: 900}, "", 1, `charm "db" has no revision 900`},
		{"no such charm", charmsource.Wish{Name: "nosuch"}, "", 1, `charm "nosuch": the store does not have it`},
		{"no such channel", charmsource.Wish{Name: "db", Channel: "17/stable"}, "", 1,
			`charm "db" has no release in channel "17/stable" on amd64; there are 16/edge (ubuntu@24.10), 14/stable (ubuntu@22.04), 14/stable (ubuntu@24.10), 14/stable (ubuntu@24.04)`},
		{"a bundle", charmsource.Wish{Name: "both"}, "3 latest/stable @", 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			answers, err := newClient(t, s).Resolve(t.Context(), amd64(tt.wish))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if r := answers[0].Release; r.Revision > 0 {
				got = fmt.Sprintf("%d %s %s", r.Revision, r.Channel, r.Base)
			}
			if text := fmt.Sprint(answers[0].Err); got != tt.want || tt.err != "" && text != tt.err || tt.err == "" && answers[0].Err != nil {
				t.Errorf("%q, %s", got, text)
			}
			if n := len(s.Requests()); n != tt.requests {
				t.Errorf("%d requests, want %d", n, tt.requests)
			}
		})
	}
}

// TestResolveMany checks that each of several wishes gets its own answer, even though the API returns answers
// in any order.
func TestResolveMany(t *testing.T) {
	s := newStore(t)
	id := s.Charm("db").ID
	if id == "" {
		id = "unset"
	}
	noble := charmsource.Base{Name: "ubuntu", Version: "24.04"}
	for range 5 {
		answers, err := newClient(t, s).Resolve(t.Context(),
			amd64(charmsource.Wish{Name: "db", Revision: 9}), amd64(charmsource.Wish{Name: "nosuch"}),
			amd64(charmsource.Wish{ID: id, Have: 7, Channel: "14/stable", Base: noble}), amd64(charmsource.Wish{Name: "both"}))
		if err != nil {
			t.Fatal(err)
		}
		got := []int{}
		for _, a := range answers {
			got = append(got, a.Release.Revision)
		}
		if diff := cmp.Diff([]int{9, 0, 8, 3}, got); diff != "" {
			t.Error(diff)
		}
		if !errors.Is(answers[1].Err, charmsource.ErrNotFound) {
			t.Error(answers[1].Err)
		}
	}
}

func TestResolveResources(t *testing.T) {
	c := newClient(t, newStore(t))
	wish := amd64(charmsource.Wish{Name: "db", Base: charmsource.Base{Name: "ubuntu", Version: "22.04"}})
	for want, revisions := range map[int]map[string]int{1: nil, 2: {"site": 2}} {
		wish.Resources = revisions
		answers, err := c.Resolve(t.Context(), wish)
		if err != nil || answers[0].Err != nil {
			t.Fatal(err, answers[0].Err)
		}
		if got := answers[0].Release.Resources; len(got) != 1 || got[0].Revision != want || got[0].Filename != "site.zip" {
			t.Errorf("%+v, want revision %d", got, want)
		}
	}
	wish.Resources = map[string]int{"site": 4}
	answers, err := c.Resolve(t.Context(), wish)
	if err != nil || !errors.Is(answers[0].Err, charmsource.ErrNotFound) {
		t.Error(err, answers[0].Err)
	}
}

// TestRequests checks that requests contain all data that the API needs, and no data about the client.
func TestRequests(t *testing.T) {
	s := newStore(t)
	c := newClient(t, s)
	if _, err := c.Resolve(t.Context(), amd64(charmsource.Wish{Name: "db", Revision: 7})); err != nil {
		t.Fatal(err)
	}
	r := s.Requests()[0]
	var body struct {
		Context []any            `json:"context"`
		Actions []map[string]any `json:"actions"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil || body.Context == nil {
		t.Errorf("%v: %s", err, r.Body)
	}
	delete(body.Actions[0], "instance-key")
	want := map[string]any{"action": "install", "name": "db", "revision": 7.0, "base": nil}
	if diff := cmp.Diff(want, body.Actions[0]); diff != "" {
		t.Error(diff)
	}
	if got := r.Header.Get("User-Agent"); got != "bijou/1.2.3" || r.Header.Get("Authorization") != "" {
		t.Errorf("%v", r.Header)
	}
}

func TestFindAndInfo(t *testing.T) {
	s := newStore(t)
	c := newClient(t, s)
	found, err := c.Find(t.Context(), charmsource.Query{Text: "data"})
	if err != nil || len(found) != 1 || found[0].Name != "db" || found[0].Publisher != "Canonical" {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := c.Find(t.Context(), charmsource.Query{}); err != nil || !strings.Contains(s.Requests()[1].Path, "category=featured") {
		t.Error(err, s.Requests()[1].Path)
	}
	info, err := c.Info(t.Context(), "db", "")
	if err != nil || len(info.Channels) != 5 || info.Channels[1].Track != "14" || info.Channels[1].Base.Version != "22.04" {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := c.Info(t.Context(), "nosuch", ""); !errors.Is(err, charmsource.ErrNotFound) {
		t.Error(err)
	}
}

// TestFaults checks for each fault of the API which requests are retried, and which error is returned if the
// retries do not help.
func TestFaults(t *testing.T) {
	sec := time.Second
	for _, tt := range []struct {
		fault  charmhub.Fault
		times  int
		waits  []time.Duration
		failed string // a part of the error; empty if it succeeds
	}{
		{charmhub.Throttled, 2, []time.Duration{sec, sec}, ""},
		{charmhub.Throttled, -1, []time.Duration{sec, sec}, `answers "429 Too Many Requests"`},
		{charmhub.Unavailable, 1, []time.Duration{sec}, ""},
		{charmhub.Unexplained, 2, []time.Duration{10 * sec, 10 * sec}, ""},
		{charmhub.Unexplained, -1, []time.Duration{10 * sec, 10 * sec}, `answers "503 Service Unavailable"`},
		{charmhub.Closed, -1, nil, "retry at "},
		{charmhub.Hangup, 2, []time.Duration{3 * sec, 3 * sec}, ""},
		{charmhub.Hangup, -1, []time.Duration{3 * sec, 3 * sec}, "closed the connection before it had answered"},
		{charmhub.WrongURL, -1, nil, `answers "404 Not Found"`},
		{charmhub.Nonsense, -1, nil, "does not answer like a charm store"},
		{charmhub.NullCharm, -1, nil, `the answer of the store has no charm "db"`},
		{charmhub.OtherCharm, -1, nil, `the answer of the store for "db" has the name "other"`},
		{charmhub.NoRevision, -1, nil, `the answer of the store for "db" has the invalid revision 0`},
		{charmhub.BadChannel, -1, nil, `the answer of the store for "db" has an invalid channel "latest\x1b[31m\nhint: red/stable"`},
		{charmhub.BadBase, -1, nil, `the answer of the store for "db" has the invalid base "ubuntu\x1b[31m\nhint: red@24.04"`},
		{charmhub.BadResource, -1, nil, `the answer of the store for "db" has an invalid resource name "../\x1b[31m\nhint: red"`},
		{charmhub.LongCode, -1, nil, `the store did not understand the request ("\x1b[31mxxx`},
		{charmhub.UnknownField, -1, nil, ""},
		{charmhub.OldHashes, -1, nil, ""},
	} {
		t.Run(fmt.Sprint(tt.fault, tt.times), func(t *testing.T) {
			s := newStore(t)
			if err := s.Misbehave(tt.fault, tt.times); err != nil {
				t.Fatal(err)
			}
			c := newClient(t, s)
			answers, err := c.Resolve(t.Context(), amd64(charmsource.Wish{Name: "db", Base: charmsource.Base{Name: "ubuntu", Version: "22.04"}}))
			if err == nil {
				err = answers[0].Err
			}
			switch {
			case tt.failed == "" && (err != nil || answers[0].Release.File.SHA256 == ""):
				t.Errorf("%v", err)
			case tt.failed != "" && (err == nil || !strings.Contains(err.Error(), tt.failed) || !errors.Is(err, charmsource.ErrAway)):
				t.Errorf("%v, want %q", err, tt.failed)
			}
			if len(fmt.Sprint(err)) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if diff := cmp.Diff(tt.waits, *c.waits); diff != "" && len(tt.waits)+len(*c.waits) > 0 {
				t.Error(diff)
			}
			if len(*c.notes) != len(tt.waits) {
				t.Errorf("notes: %q", *c.notes)
			}
		})
	}
}

// TestFetch checks each fault of a download. No part of an incomplete file may remain.
func TestFetch(t *testing.T) {
	for _, tt := range []struct {
		fault  charmhub.Fault
		times  int
		failed string
	}{
		{charmhub.None, 0, ""},
		{charmhub.OtherHost, -1, ""},
		{charmhub.Slow, -1, ""},
		{charmhub.Throttled, 1, ""},
		{charmhub.Hangup, 1, ""},
		{charmhub.Cut, 1, ""},
		{charmhub.Cut, -1, "closed the connection before it had answered"},
		{charmhub.WrongURL, -1, "the file no longer exists"},
		{charmhub.Unavailable, -1, `answers "503 Service Unavailable"`},
	} {
		t.Run(fmt.Sprint(tt.fault, tt.times), func(t *testing.T) {
			checkFetch(t, charmhub.None, tt.fault, tt.times, tt.failed)
		})
	}
	for fault, failed := range map[charmhub.Fault]string{
		charmhub.WrongSum:  "but the store lists",
		charmhub.WrongSize: "but the store lists",
		charmhub.OldHashes: "",
		charmhub.BadHost:   `refers to a different host, "\u009b31m.example"`,
	} {
		t.Run(string(fault), func(t *testing.T) { checkFetch(t, fault, charmhub.None, 0, failed) })
	}
}

func checkFetch(t *testing.T, before, during charmhub.Fault, times int, failed string) {
	t.Helper()
	s := newStore(t)
	c := newClient(t, s)
	misbehave := func(f charmhub.Fault, times int) {
		t.Helper()
		if err := s.Misbehave(f, times); err != nil {
			t.Fatal(err)
		}
	}
	misbehave(before, -1)
	answers, err := c.Resolve(t.Context(), amd64(charmsource.Wish{Name: "db", Revision: 7}))
	if err != nil || answers[0].Err != nil {
		t.Fatal(err, answers)
	}

	misbehave(during, times)
	path := filepath.Join(t.TempDir(), "charm")
	sum, err := c.Fetch(t.Context(), answers[0].Release.File, path)
	if failed != "" {
		if err == nil || !strings.Contains(err.Error(), failed) {
			t.Errorf("%v, want %q", err, failed)
		}
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		return
	}

	data, rerr := os.ReadFile(path)
	want := sha512.Sum384([]byte("seven"))
	if err != nil || rerr != nil || string(data) != "seven" || sum != hex.EncodeToString(want[:]) {
		t.Errorf("%q, %s: %v, %v", data, sum, err, rerr)
	}
	for _, r := range s.Requests() {
		if strings.HasPrefix(r.Path, "/cdn/") && (r.Header.Get("Content-Type") != "" || r.Header.Get("Accept") != "") {
			t.Errorf("headers were taken along: %v", r.Header)
		}
	}
}

func TestFetchRefuses(t *testing.T) {
	c := newClient(t, newStore(t))
	for name, file := range map[string]charmsource.File{
		"no URL":         {SHA256: "00", Size: 1},
		"no sum":         {URL: "http://127.0.0.1/x", Size: 1},
		"another host":   {URL: "http://other.example/x", SHA256: "00", Size: 1},
		"another scheme": {URL: "file:///etc/passwd", SHA256: "00", Size: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.Fetch(t.Context(), file, filepath.Join(t.TempDir(), "x")); !errors.Is(err, charmsource.ErrAway) {
				t.Error(err)
			}
		})
	}
}

// TestFetchFollowsNoSymlink checks that a symlink in place of the incomplete file does not lead to a different file.
func TestFetchFollowsNoSymlink(t *testing.T) {
	c := newClient(t, newStore(t))
	answers, err := c.Resolve(t.Context(), amd64(charmsource.Wish{Name: "db", Revision: 7}))
	if err != nil || answers[0].Err != nil {
		t.Fatal(err, answers)
	}
	path := filepath.Join(t.TempDir(), "charm")
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("mine"), 0o600), os.Symlink(victim, path+".part")); err != nil {
		t.Fatal(err)
	}

	_, err = c.Fetch(t.Context(), answers[0].Release.File, path)
	data, readErr := os.ReadFile(victim)
	if err == nil || readErr != nil || string(data) != "mine" {
		t.Errorf("%v, %v, %q", err, readErr, data)
	}
}

// TestCrowdedAnswer checks that an answer that would fill the memory is refused.
func TestCrowdedAnswer(t *testing.T) {
	s := newStore(t)
	if err := s.Misbehave(charmhub.Crowded, -1); err != nil {
		t.Fatal(err)
	}
	_, err := newClient(t, s).Find(t.Context(), charmsource.Query{Text: "db"})
	if err == nil || !errors.Is(err, charmsource.ErrAway) || !strings.Contains(err.Error(), "has more than 200000 values") {
		t.Error(err)
	}
}

// TestResolveByID checks that a request by id is answered for that id.
func TestResolveByID(t *testing.T) {
	s := newStore(t)
	wish := amd64(charmsource.Wish{ID: s.Charm("db").ID, Have: 7, Channel: "14/stable", Base: charmsource.Base{Name: "ubuntu", Version: "24.04"}})
	c := newClient(t, s)
	if release, err := charmsource.ResolveOne(t.Context(), c, wish); err != nil || release.Revision != 8 {
		t.Fatal(release, err)
	}
	if err := s.Misbehave(charmhub.OtherCharm, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := charmsource.ResolveOne(t.Context(), c, wish); !errors.Is(err, charmsource.ErrAway) || !strings.Contains(err.Error(), "has the id") {
		t.Error(err)
	}
}

func TestParseChannel(t *testing.T) {
	for _, test := range []struct {
		followed, text string
		want           string // empty if the charm is refused
	}{
		{"", "", "stable"},
		{"", "14", "14/stable"},
		{"", "stable", "latest/stable"},
		{"", "edge", "latest/edge"},
		{"", "edge/fix", "latest/edge/fix"},
		{"", "14/edge", "14/edge"},
		{"", "14/edge/fix", "14/edge/fix"},
		{"", "14/", ""},
		{"", "14/blue", ""},
		{"", "/edge", ""},
		{"", "a/b/c/d", ""},
		{"", "a b", ""},
		{"", "a\x1b[31m/stable", ""},
		{"", "a\u202e", ""},
		{"", strings.Repeat("x", 129), ""},

		{"16/stable", "", "16/stable"},
		{"16/stable", "edge", "16/edge"},
		{"16/stable", "edge/fix", "16/edge/fix"},
		{"16/stable", "14", "14/stable"},
		{"stable", "", "stable"},
		{"stable", "edge", "latest/edge"},
	} {
		t.Run(test.followed+" "+test.text, func(t *testing.T) {
			got, err := charmsource.ParseChannelFrom(test.followed, test.text)
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
		})
	}
}

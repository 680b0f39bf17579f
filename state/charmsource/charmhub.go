package charmsource

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"bijou/state/backoff"
)

// CharmhubURL is where Charmhub's API is.
const CharmhubURL = "https://api.charmhub.io"

// Options are options of NewCharmhub.
type Options struct {
	URL     string // of the API; empty: CharmhubURL
	Version string // of this program, which requests say
	Proxy   Proxy
	// Notify is told each wait before a retry; nil: nobody is.
	Notify func(text string)
	// Progress is told how far a download is; nil: nobody is.
	Progress func(what string, done, total int)
	// Sleep waits before a retry; nil: backoff.Sleep.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Charmhub is a client of Charmhub's API, version 2, or of a mirror of it. It sends no account.
type Charmhub struct {
	base     *url.URL
	agent    string
	api      *http.Client
	files    *http.Client
	notify   func(text string)
	progress func(what string, done, total int)
	sleep    func(ctx context.Context, d time.Duration) error
	timeout  time.Duration
}

var _ Source = (*Charmhub)(nil)

// requestTimeout bounds one try of a request, but for downloads.
const requestTimeout = 10 * time.Second

// maxAnswer is in bytes.
const maxAnswer = 64 << 20

// NewCharmhub returns a client, which has sent no request yet. It returns an error if the options are
// invalid.
func NewCharmhub(o Options) (*Charmhub, error) {
	if o.URL == "" {
		o.URL = CharmhubURL
	}
	base, err := parseBase(o.URL)
	if err != nil {
		return nil, err
	}
	proxy, err := o.Proxy.choose()
	if err != nil {
		return nil, err
	}

	c := &Charmhub{
		base:     base,
		agent:    "bijou/" + o.Version,
		notify:   func(string) {},
		progress: func(string, int, int) {},
		sleep:    backoff.Sleep,
		timeout:  requestTimeout,
	}
	c.takeCallbacks(o)

	transport := &http.Transport{
		Proxy:                 proxy,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   requestTimeout,
		ResponseHeaderTimeout: silenceTimeout,
		IdleConnTimeout:       silenceTimeout,
	}
	c.api = &http.Client{Transport: transport}
	c.files = &http.Client{Transport: transport, CheckRedirect: c.checkRedirect}
	return c, nil
}

func (c *Charmhub) takeCallbacks(o Options) {
	if o.Notify != nil {
		c.notify = o.Notify
	}
	if o.Progress != nil {
		c.progress = o.Progress
	}
	if o.Sleep != nil {
		c.sleep = o.Sleep
	}
}

// CheckURL returns why text cannot be the URL of a store.
func CheckURL(text string) error {
	_, err := parseBase(text)
	return err
}

func parseBase(text string) (*url.URL, error) {
	base, err := url.Parse(strings.TrimRight(text, "/"))
	isWeb := err == nil && (base.Scheme == "https" || base.Scheme == "http")
	if !isWeb || base.Host == "" || base.RawQuery != "" || base.User != nil {
		return nil, fmt.Errorf("invalid URL %q of a charm store: want one like %s", text, CharmhubURL)
	}
	return base, nil
}

// Find implements Source.Find.
func (c *Charmhub) Find(ctx context.Context, q Query) ([]Found, error) {
	query := url.Values{"fields": {strings.Join(findFields(), ",")}}
	if q.Text == "" && q == (Query{}) {
		q.Category = "featured"
	}

	words := map[string]string{
		"q":                 q.Text,
		"category":          q.Category,
		"channel":           q.Channel,
		"type":              q.Type,
		"relation-requires": q.Requires,
		"relation-provides": q.Provides,
	}
	for key, value := range words {
		if value != "" {
			query.Set(key, value)
		}
	}

	var answer struct {
		Results []packageJSON `json:"results"`
	}
	if err := c.get(ctx, "find", query, &answer); err != nil {
		return nil, fmt.Errorf("cannot search the store: %w", err)
	}

	found := []Found{}
	for _, p := range answer.Results {
		found = append(found, p.found())
	}
	return found, nil
}

// Info implements Source.Info.
func (c *Charmhub) Info(ctx context.Context, name, channel string) (Info, error) {
	query := url.Values{"fields": {strings.Join(infoFields(), ",")}}
	if channel != "" {
		query.Set("channel", channel)
	}

	var answer packageJSON
	if err := c.get(ctx, "info/"+url.PathEscape(name), query, &answer); err != nil {
		return Info{}, fmt.Errorf("cannot look up %q in the store: %w", name, err)
	}
	return answer.info(), nil
}

// maxRounds of requests are one as it was wished, one for the bases that there are, and one with a base of
// those.
const maxRounds = 3

// Resolve implements Source.Resolve.
func (c *Charmhub) Resolve(ctx context.Context, wishes ...Wish) ([]Answer, error) {
	answers := make([]Answer, len(wishes))
	pending := map[int]Wish{}
	for i, w := range wishes {
		pending[i] = w
	}

	for range maxRounds {
		if len(pending) == 0 {
			break
		}
		if err := c.refresh(ctx, pending, answers); err != nil {
			return nil, fmt.Errorf("cannot ask the store: %w", err)
		}

		for _, i := range slices.Sorted(maps.Keys(pending)) {
			next, again := nextWish(pending[i], wishes[i], answers[i].Err)
			delete(pending, i)
			if again {
				pending[i] = next
			}
		}
	}

	for i, w := range wishes {
		if none, ok := errors.AsType[*NoReleaseError](answers[i].Err); ok {
			none.Wish = w
		}
		if answers[i].Err == nil {
			answers[i].Err = c.pickResources(ctx, &answers[i].Release, w.Resources)
		}
	}
	return answers, nil
}

// nextWish returns the next question to the store if it has no release for the wished base. again is false
// if no question is left, or if err is a different error.
func nextWish(asked, wished Wish, err error) (next Wish, again bool) {
	none, ok := errors.AsType[*NoReleaseError](err)
	if !ok || wished.Revision > 0 || wished.Base.Name != "" && len(wished.Also) == 0 && !wished.OrOther {
		return asked, false
	}

	// If the channel is only a risk, the store knows its track and bases.
	if asked.Base.Name != "" && len(none.Default) == 0 {
		if asked.Base.String() != wished.Base.String() {
			return asked, false
		}
		asked.Base = Base{}
		return asked, true
	}

	base, ok := wished.chooseFrom(none.candidates())
	if !ok || asked.Base.Name == base.Name && asked.Base.Version == base.Version {
		return asked, false
	}
	asked.Base = Base{Name: base.Name, Version: base.Version, Arch: wished.Arch}
	return asked, true
}

// refresh sends the wishes in one request, and puts each answer into answers at its wish's place.
func (c *Charmhub) refresh(ctx context.Context, wishes map[int]Wish, answers []Answer) error {
	request := refreshRequest{Context: []contextJSON{}, Fields: refreshFields()}
	keys := map[string]int{}
	for _, i := range slices.Sorted(maps.Keys(wishes)) {
		key := newKey()
		keys[key] = i
		request.add(wishes[i], key)
	}

	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	var answer refreshAnswer
	if err := c.ask(ctx, http.MethodPost, "refresh", nil, body, &answer); err != nil {
		return err
	}
	if len(answer.Errors) > 0 {
		return answer.Errors.explain()
	}

	for _, result := range answer.Results {
		i, ok := keys[result.Key]
		if !ok {
			continue // an answer to nothing that was asked
		}
		delete(keys, result.Key)
		release, err := result.release(wishes[i])
		answers[i] = Answer{release, err}
	}
	if len(keys) > 0 {
		return awayf("its answer lacks %d of %d results", len(keys), len(wishes))
	}
	return nil
}

// pickResources puts the wanted revisions of resources in the place of those that were released.
func (c *Charmhub) pickResources(ctx context.Context, r *Release, wanted map[string]int) error {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		var answer struct {
			Revisions []resourceJSON `json:"revisions"`
		}
		path := "resources/" + url.PathEscape(r.Name) + "/" + url.PathEscape(name) + "/revisions"
		if err := c.get(ctx, path, nil, &answer); err != nil {
			return fmt.Errorf("cannot look up resource %q of charm %q in the store: %w", name, r.Name, err)
		}

		i := slices.IndexFunc(answer.Revisions, func(one resourceJSON) bool { return one.Revision == wanted[name] })
		if i < 0 {
			return fmt.Errorf("resource %q of charm %q has no revision %d: %w", name, r.Name, wanted[name], ErrNotFound)
		}
		picked := answer.Revisions[i].resource(r.Name)
		picked.Name = name

		r.Resources = slices.DeleteFunc(r.Resources, func(old Resource) bool { return old.Name == name })
		r.Resources = append(r.Resources, picked)
	}
	return nil
}

// newKey returns a key that does not identify the caller.
func newKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (c *Charmhub) get(ctx context.Context, path string, query url.Values, into any) error {
	return c.ask(ctx, http.MethodGet, path, query, nil, into)
}

// ask sends a request, again where that may help, and decodes the answer.
func (c *Charmhub) ask(ctx context.Context, method, path string, query url.Values, body []byte, into any) error {
	at := c.base.String() + "/v2/charms/" + path
	if len(query) > 0 {
		at += "?" + query.Encode()
	}

	return c.retry(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()

		// Each try has its own reader of the body.
		req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
		if err != nil {
			return awayf("%w", err)
		}
		req.Header.Set("Accept", "application/json")
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("User-Agent", c.agent)

		resp, err := c.api.Do(req)
		if err != nil {
			return c.away(err)
		}
		defer resp.Body.Close()
		return c.readAnswer(resp, into)
	})
}

// readAnswer decodes a response of the store. It returns ErrNotFound or the store's own error for a
// refusal, and an error that says that the store is away for all that a charm store would not answer.
func (c *Charmhub) readAnswer(resp *http.Response, into any) error {
	if err := checkBusy(resp); err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return c.away(err)
	}
	if len(data) > maxAnswer {
		return awayf("%s answers with more than %d MiB", c.base.Host, maxAnswer>>20)
	}

	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	isJSON := strings.TrimSpace(kind) == "application/json"
	if resp.StatusCode/100 != 2 {
		var failed struct {
			Errors errorList `json:"error-list"`
			Old    errorList `json:"error_list"`
		}
		if isJSON && json.Unmarshal(data, &failed) == nil && len(failed.Errors)+len(failed.Old) > 0 {
			return append(failed.Errors, failed.Old...).explain()
		}
		if resp.StatusCode == http.StatusNotFound && isJSON {
			return ErrNotFound
		}
		return awayf("%s answers %q", c.base, resp.Status)
	}

	if err := json.Unmarshal(data, into); err != nil {
		return awayf("%s does not answer as a charm store", c.base)
	}
	return nil
}

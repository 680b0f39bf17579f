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
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"bijou/state/backoff"
)

// CharmhubURL is the URL of Charmhub's API.
const CharmhubURL = "https://api.charmhub.io"

// Options are the options of [NewCharmhub].
type Options struct {
	URL     string // the API's URL; empty for CharmhubURL
	Version string // this program's version, for the header User-Agent
	Proxy   Proxy
	// Notify is called with a text before each wait for a retry. It can be nil.
	Notify func(text string)
	// Progress is called with the progress of downloads. It can be nil.
	Progress func(what string, done, total int)
	// Sleep waits before a retry. If it is nil, backoff.Sleep waits.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Charmhub is a client of version 2 of Charmhub's API, or of a mirror. It has no account.
type Charmhub struct {
	base     *url.URL
	agent    string       // the header User-Agent
	api      *http.Client // for requests to the API
	files    *http.Client // for downloads
	notify   func(text string)
	progress func(what string, done, total int)
	sleep    func(ctx context.Context, d time.Duration) error
	timeout  time.Duration // of each try of a request to the API
}

var _ Store = (*Charmhub)(nil)

// requestTimeout limits each try of a request, except downloads. It also limits the attempt to connect, for
// downloads too.
const requestTimeout = 10 * time.Second

// maxAnswer is the maximum size of a response in bytes, except downloads.
const maxAnswer = 64 << 20

// maxValues is the maximum number of values in a response. In memory, a short value such as null can take a thousand
// times as many bytes.
const maxValues = 200_000

// NewCharmhub returns a client. It sends no request. It returns an error if the options are invalid.
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
		DialContext:           (&net.Dialer{Timeout: requestTimeout}).DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   requestTimeout,
		ResponseHeaderTimeout: silenceTimeout,
		IdleConnTimeout:       silenceTimeout,
	}

	// Answers contain the sums that verify files, so a redirect must not lead to an unencrypted answer.
	checkAnswer := func(req *http.Request, via []*http.Request) error { return checkEncrypted("request", req, via) }
	c.api = &http.Client{Transport: transport, CheckRedirect: checkAnswer}
	c.files = &http.Client{Transport: transport, CheckRedirect: c.checkRedirect}
	return c, nil
}

// takeCallbacks sets the functions that o has. All others keep their defaults.
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

// CheckURL returns an error if text cannot be the URL of a store.
func CheckURL(text string) error {
	_, err := parseBase(text)
	return err
}

// parseBase parses the URL of a store, without slashes at its end. It returns an error if text is not an http or
// https URL with a host, or if the URL has a query, a fragment or a user.
func parseBase(text string) (*url.URL, error) {
	base, err := url.Parse(strings.TrimRight(text, "/"))
	isHTTP := err == nil && (base.Scheme == "https" || base.Scheme == "http")
	hasMore := err == nil && (base.RawQuery != "" || base.ForceQuery || base.User != nil)
	// Of a lone "#", the parsed URL keeps nothing.
	if !isHTTP || base.Host == "" || hasMore || strings.Contains(text, "#") {
		return nil, fmt.Errorf("invalid URL %q of a charm store: want one like %s", text, CharmhubURL)
	}
	return base, nil
}

// Find implements [Store].
func (c *Charmhub) Find(ctx context.Context, q Query) ([]Found, error) {
	query := url.Values{"fields": {strings.Join(findFields(), ",")}}
	// An empty query selects the charms that the store features.
	if q == (Query{}) {
		q.Category = "featured"
	}

	parameters := map[string]string{
		"q":                 q.Text,
		"category":          q.Category,
		"channel":           q.Channel,
		"type":              q.Type,
		"relation-requires": q.Requires,
		"relation-provides": q.Provides,
	}
	for key, value := range parameters {
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

// Info implements [Store].
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

// maxRounds is the maximum number of requests for a wish. The first request is for the wish itself, the
// second for the bases that exist, and the third for one of these bases.
const maxRounds = 3

// Resolve implements [Source]. It queries the store up to maxRounds times: first for all wishes, and then for
// those that nextWish replaces. It then looks up the wished revisions of resources.
func (c *Charmhub) Resolve(ctx context.Context, wishes ...Wish) ([]Answer, error) {
	answers := make([]Answer, len(wishes))
	pending := map[int]Wish{} // the wishes to send next, by their index in wishes
	for i, w := range wishes {
		pending[i] = w
	}

	for range maxRounds {
		if len(pending) == 0 {
			break
		}
		if err := c.refresh(ctx, pending, answers); err != nil {
			return nil, fmt.Errorf("cannot query the store: %w", err)
		}

		for _, i := range slices.Sorted(maps.Keys(pending)) {
			next, again := nextWish(pending[i], wishes[i], answers[i].Err)
			if again {
				pending[i] = next
			} else {
				delete(pending, i)
			}
		}
	}

	for i, w := range wishes {
		// The error is about the caller's wish, not about the last wish that was sent for it.
		if noRelease, ok := errors.AsType[*NoReleaseError](answers[i].Err); ok {
			noRelease.Wish = w
		}
		// Without wished revisions of resources, pickResources does nothing.
		if answers[i].Err == nil {
			answers[i].Err = c.pickResources(ctx, &answers[i].Release, w.Resources)
		}
	}
	return answers, nil
}

// nextWish returns the next wish to send if the store has no release for the wished base. wished is the
// caller's wish, sent is the last wish that was sent for it, and err is the error in the answer to sent.
// again is false if there is no further wish to send, or if err is not a *NoReleaseError. next then has no
// meaning.
func nextWish(sent, wished Wish, err error) (next Wish, again bool) {
	noRelease, isNoRelease := errors.AsType[*NoReleaseError](err)
	acceptsOnlyBase := wished.Base.Name != "" && len(wished.Also) == 0 && !wished.OrOther
	// A base has no effect on a wish for a revision, so a different base cannot help.
	if !isNoRelease || wished.Revision > 0 || acceptsOnlyBase {
		return sent, false
	}

	// A channel that is only a risk is in the charm's default track, which only the store knows. The error
	// for a wish without a base lists the bases of that channel.
	if sent.Base.Name != "" && len(noRelease.Default) == 0 {
		hasWishedBase := sent.Base.String() == wished.Base.String()
		if !hasWishedBase {
			// sent was chosen from the bases that the store listed, so the store has nothing better.
			return sent, false
		}
		next = sent
		next.Base = Base{}
		return next, true
	}

	base, ok := wished.chooseFrom(noRelease.candidates())
	// The store has already refused the base of sent.
	isRefused := sent.Base.Name == base.Name && sent.Base.Version == base.Version
	if !ok || isRefused {
		return sent, false
	}
	next = sent
	next.Base = Base{Name: base.Name, Version: base.Version, Arch: wished.Arch}
	return next, true
}

// refresh sends the wishes in one request. It sets the answer to wishes[i] in answers[i]. It returns an error if
// the whole request fails, and ErrAway if the response lacks the result for a wish.
func (c *Charmhub) refresh(ctx context.Context, wishes map[int]Wish, answers []Answer) error {
	request := refreshRequest{Context: []contextJSON{}, Fields: refreshFields()}
	keys := map[string]int{} // the indexes of the wishes, by the keys of the request
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
	// The request has no query (nil).
	if err := c.ask(ctx, http.MethodPost, "refresh", nil, body, &answer); err != nil {
		return err
	}
	if len(answer.Errors) > 0 {
		return answer.Errors.explain()
	}

	for _, result := range answer.Results {
		i, ok := keys[result.Key]
		if !ok {
			continue // a result that was not requested
		}

		delete(keys, result.Key)
		release, err := result.release(wishes[i])
		answers[i] = Answer{release, err}
	}
	if len(keys) > 0 {
		return awayf("the answer of the store lacks %d of %d results", len(keys), len(wishes))
	}
	return nil
}

// pickResources replaces resources in r.Resources. wanted maps the name of each resource to replace to its new
// revision. It returns ErrNotFound if a wanted revision does not exist.
func (c *Charmhub) pickResources(ctx context.Context, r *Release, wanted map[string]int) error {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		var answer struct {
			Revisions []resourceJSON `json:"revisions"`
		}
		path := "resources/" + url.PathEscape(r.Name) + "/" + url.PathEscape(name) + "/revisions"
		if err := c.get(ctx, path, nil, &answer); err != nil {
			return fmt.Errorf("cannot look up resource %q of charm %q in the store: %w", name, r.Name, err)
		}

		isWanted := func(candidate resourceJSON) bool { return candidate.Revision == wanted[name] }
		i := slices.IndexFunc(answer.Revisions, isWanted)
		if i < 0 {
			return fmt.Errorf("resource %q of charm %q has no revision %d: %w", name, r.Name, wanted[name], ErrNotFound)
		}

		picked := answer.Revisions[i].resource(r.Name)
		picked.Name = name // the request was for this resource, whatever name the answer has
		r.Resources = slices.DeleteFunc(r.Resources, func(old Resource) bool { return old.Name == name })
		r.Resources = append(r.Resources, picked)
	}
	return nil
}

// newKey returns the key of a wish in a request: a random UUID (RFC 9562, version 4), which does not identify
// the caller.
func newKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// get is [Charmhub.ask] for a GET request.
func (c *Charmhub) get(ctx context.Context, path string, query url.Values, into any) error {
	return c.ask(ctx, http.MethodGet, path, query, nil, into)
}

// ask sends a request to the API and decodes the response into the value at into. path is relative to
// /v2/charms/. ask sends the request up to maxTries times, as long as a retry can help; see retry.
func (c *Charmhub) ask(ctx context.Context, method, path string, query url.Values, body []byte, into any) error {
	address := c.base.String() + "/v2/charms/" + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}

	return c.retry(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()

		// Each try has its own reader of the body.
		req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
		if err != nil {
			return awayf("%w", err)
		}
		req.Header.Set("Accept", "application/json")
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("User-Agent", c.agent)

		resp, err := c.api.Do(req)
		if err != nil {
			return away(c.base.Host, c.timeout, err)
		}
		defer resp.Body.Close()
		return c.readAnswer(resp, into)
	})
}

// readAnswer decodes the store's response into the value at into. It returns a *busyError if the store is busy,
// and the error of away if it cannot read the whole response. If the store refuses the request, it returns the
// store's own error, or ErrNotFound. It returns ErrAway if the response is too large, or cannot come from a
// charm store, for example if it is a proxy's error page.
func (c *Charmhub) readAnswer(resp *http.Response, into any) error {
	if err := checkBusy(resp); err != nil {
		return err
	}

	// One byte more than the maximum shows that the response is too large.
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return away(c.base.Host, c.timeout, err)
	}
	if len(data) > maxAnswer {
		return awayf("the answer of %s has more than %d MiB", c.base.Host, maxAnswer>>20)
	}
	if countValues(data) > maxValues {
		return awayf("the answer of %s has more than %d values", c.base.Host, maxValues)
	}

	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	isJSON := strings.TrimSpace(kind) == "application/json"
	if resp.StatusCode/100 != 2 {
		return c.explainRefusal(resp, data, isJSON)
	}

	if err := json.Unmarshal(data, into); err != nil {
		return awayf("%s does not answer like a charm store", c.base)
	}
	return nil
}

// explainRefusal returns the error for a response with an error status, whose body is data: the store's own
// error, ErrNotFound or ErrAway. isJSON reports whether the response says that data is JSON.
func (c *Charmhub) explainRefusal(resp *http.Response, data []byte, isJSON bool) error {
	var refusal struct {
		Errors errorList `json:"error-list"`
		Old    errorList `json:"error_list"` // the older spelling
	}
	if isJSON && json.Unmarshal(data, &refusal) == nil && len(refusal.Errors)+len(refusal.Old) > 0 {
		return append(refusal.Errors, refusal.Old...).explain()
	}

	// A proxy's 404 is not JSON.
	if resp.StatusCode == http.StatusNotFound && isJSON {
		return ErrNotFound
	}
	return awayf("%s answers %.100q", c.base, resp.Status)
}

// countValues estimates the number of values in the JSON. It counts the commas outside of strings, and the first
// value, which no comma precedes.
func countValues(data []byte) int {
	n := 1
	isText := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case isText && c == '\\':
			i++ // skip the escaped character, which can be a quote
		case c == '"':
			isText = !isText
		case c == ',' && !isText:
			n++
		}
	}
	return n
}

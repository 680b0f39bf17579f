// Package charmhub is a server that imitates Charmhub's public API: find, info, refresh, resources and
// downloads. A test can make it misbehave in many ways.
//
// It does not imitate accounts, publishing, or requests that clients do not make to deploy a charm.
package charmhub

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"gopkg.in/yaml.v3"
)

// Base is a base of the API.
type Base struct {
	Architecture string `json:"architecture"`
	Name         string `json:"name"`
	Channel      string `json:"channel"`
}

// Charm is a charm or bundle with all its published revisions and resources.
type Charm struct {
	Type         string // "charm", "bundle"
	ID           string
	Name         string
	Summary      string
	Publisher    string
	DefaultTrack string
	Revisions    []Revision
	Releases     []Release
	Resources    map[string]Resource
}

// Revision is one revision.
type Revision struct {
	Number   int
	Bytes    []byte // of the archive
	Bases    []Base
	Metadata string
	Config   string
	Actions  string
}

// Release is a revision in a channel, for a base.
type Release struct {
	Track, Risk, Branch string
	Base                Base
	Revision            int
	Resources           map[string]int
}

// Resource is a resource with its revisions. The first has the number 1.
type Resource struct {
	Type      string
	Filename  string
	Revisions [][]byte
}

// Server is the server. Its methods can be called while it serves requests.
type Server struct {
	http  *httptest.Server
	other *httptest.Server // a separate host for files

	mu       sync.Mutex
	charms   []Charm
	fault    Fault
	left     int // the number of remaining requests with the fault; negative means always
	requests []Request
	gate     chan struct{} // of the fault Stopped; closed when downloads continue
}

// Request is a request that the server got.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         []byte
}

// New starts a server. The caller must close it.
func New() *Server {
	s := newServer()
	s.http.Start()
	return s
}

// On starts a server on that listener.
func On(l net.Listener) *Server {
	s := newServer()
	_ = s.http.Listener.Close()
	s.http.Listener = l
	s.http.Start()
	return s
}

func newServer() *Server {
	s := &Server{gate: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/charms/find", s.api(s.find))
	mux.HandleFunc("GET /v2/charms/info/{name}", s.api(s.info))
	mux.HandleFunc("POST /v2/charms/refresh", s.api(s.refresh))
	mux.HandleFunc("GET /v2/charms/resources/{charm}/{resource}/revisions", s.api(s.resources))
	mux.HandleFunc("GET /api/v1/{kind}/download/{file}", s.redirect)
	mux.HandleFunc("GET /cdn/{sum}", s.file)
	mux.HandleFunc("/", s.api(func(*http.Request) (any, error) { return nil, &failure{404, "not-found", "no such route"} }))
	s.http = httptest.NewUnstartedServer(mux)
	s.other = httptest.NewServer(mux)
	return s
}

// URL returns the address of its API, without a slash at the end.
func (s *Server) URL() string { return s.http.URL }

// Close stops the server.
func (s *Server) Close() {
	s.Release()
	for _, one := range []*httptest.Server{s.http, s.other} {
		one.CloseClientConnections()
		one.Close()
	}
}

// Publish adds a charm or replaces the charm of the same name.
func (s *Server) Publish(c Charm) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charms = slices.DeleteFunc(s.charms, func(o Charm) bool { return o.Name == c.Name })
	if c.ID == "" {
		c.ID = hash(c.Name)[:32]
	}
	if c.Type == "" {
		c.Type = "charm"
	}
	if c.DefaultTrack == "" {
		c.DefaultTrack = "latest"
	}
	s.charms = append(s.charms, c)
}

// Charm returns the charm called name, or a new one.
func (s *Server) Charm(name string) Charm {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.charms {
		if c.Name == name {
			return c
		}
	}
	return Charm{Name: name}
}

// Requests returns all requests in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Forget clears the list of requests.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

func (s *Server) note(r *http.Request, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{r.Method, r.URL.RequestURI(), r.Header.Clone(), body})
}

// failure is an answer that refuses the whole request.
type failure struct {
	status        int
	code, message string
}

func (f *failure) Error() string { return f.message }

// api always answers in JSON, unless a fault is on.
func (s *Server) api(answer func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		s.note(r, body.Bytes())
		if s.spoil(w) {
			return
		}

		r.Body = http.NoBody
		r = r.WithContext(r.Context())
		r.Body = readCloser{bytes.NewReader(body.Bytes())}
		found, err := answer(r)
		w.Header().Set("Content-Type", "application/json")
		if f, ok := err.(*failure); ok {
			w.WriteHeader(f.status)
			found = map[string]any{"error-list": []map[string]string{{"code": f.code, "message": f.message}}}
		}
		_ = json.NewEncoder(w).Encode(found)
	}
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

func (s *Server) find(r *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	query := r.URL.Query()
	results := []any{}
	for _, c := range s.charms {
		if q := query.Get("q"); !strings.Contains(c.Name+" "+c.Summary, q) || query.Get("type") != "" && query.Get("type") != c.Type {
			continue
		}
		results = append(results, s.packageJSON(c, false))
	}
	return map[string]any{"results": results}, nil
}

func (s *Server) info(r *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.charms {
		if c.Name == r.PathValue("name") {
			return s.packageJSON(c, true), nil
		}
	}
	return nil, &failure{404, "not-found", "No package named " + r.PathValue("name")}
}

func (s *Server) resources(r *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.charms {
		resource, ok := c.Resources[r.PathValue("resource")]
		if c.Name != r.PathValue("charm") || !ok {
			continue
		}
		all := []any{}
		// The newest revision comes first.
		for n := len(resource.Revisions); n > 0; n-- {
			all = append(all, s.resourceJSON(c, r.PathValue("resource"), n))
		}
		return map[string]any{"revisions": all}, nil
	}
	return nil, &failure{404, "resource-not-found", "no such resource"}
}

func (s *Server) packageJSON(c Charm, whole bool) map[string]any {
	entry := map[string]any{
		"type": c.Type, "id": c.ID, "name": c.Name,
		"result": map[string]any{
			"title": "", "summary": c.Summary, "description": c.Summary + "\n", "license": "",
			"publisher": publisher(c), "categories": []any{map[string]any{"featured": true, "name": "databases"}},
			"store-url": "https://charmhub.io/" + c.Name, "unlisted": false, "used-by": []string{},
		},
	}
	channels := []any{}
	for _, release := range c.Releases {
		if release.Revision == 0 {
			continue
		}
		channels = append(channels, s.channelJSON(c, release))
		if entry["default-release"] == nil {
			entry["default-release"] = s.defaultJSON(c, release, whole)
		}
	}
	if entry["default-release"] == nil {
		entry["default-release"] = map[string]any{}
	}
	if whole {
		entry["channel-map"] = channels
	}
	return entry
}

func publisher(c Charm) map[string]string {
	return map[string]string{
		"display-name": c.Publisher, "id": hash(c.Publisher)[:32],
		"username": strings.ToLower(c.Publisher), "validation": "verified",
	}
}

// defaultJSON returns the default release, with some fields that entries of the channel map do not have.
func (s *Server) defaultJSON(c Charm, release Release, whole bool) map[string]any {
	entry := s.channelJSON(c, release)
	if !whole {
		return entry
	}

	r := c.revision(release.Revision)
	revision := entry["revision"].(map[string]any)
	revision["metadata-yaml"], revision["config-yaml"], revision["actions-yaml"] = r.Metadata, r.Config, r.Actions
	revision["subordinate"] = isSubordinate(r.Metadata)
	entry["resources"] = s.resourcesOf(c, release)
	return entry
}

func isSubordinate(metadata string) bool {
	var meta struct {
		Subordinate bool `yaml:"subordinate"`
	}
	return yaml.Unmarshal([]byte(metadata), &meta) == nil && meta.Subordinate
}

func (s *Server) resourcesOf(c Charm, release Release) []any {
	resources := []any{}
	for _, name := range slices.Sorted(maps.Keys(release.Resources)) {
		resources = append(resources, s.resourceJSON(c, name, release.Resources[name]))
	}
	return resources
}

func (s *Server) channelJSON(c Charm, release Release) map[string]any {
	r := c.revision(release.Revision)
	revision := map[string]any{
		"revision": r.Number, "version": fmt.Sprint(r.Number), "created-at": at, "bases": r.Bases,
		"download": s.fileJSON("charms", c.ID+fmt.Sprintf("_%d.charm", r.Number), r.Bytes, true),
	}
	return map[string]any{
		"channel": map[string]any{
			"name": release.name(), "track": release.Track, "risk": release.Risk, "released-at": at, "base": release.Base,
		},
		"revision": revision,
	}
}

const at = "2024-09-10T12:00:00.000000+00:00"

func (r Release) name() string {
	name := r.Track + "/" + r.Risk
	if r.Branch != "" {
		name += "/" + r.Branch
	}
	return name
}

func (c Charm) revision(n int) Revision {
	i := slices.IndexFunc(c.Revisions, func(r Revision) bool { return r.Number == n })
	if i < 0 {
		return Revision{}
	}
	return c.Revisions[i]
}

type action struct {
	Action   string  `json:"action"`
	Key      string  `json:"instance-key"`
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	Channel  *string `json:"channel"`
	Revision *int    `json:"revision"`
	Base     *Base   `json:"base"`
}

type current struct {
	Key      string `json:"instance-key"`
	ID       string `json:"id"`
	Revision int    `json:"revision"`
	Base     *Base  `json:"base"`
	Tracking string `json:"tracking-channel"`
}

func (s *Server) refresh(r *http.Request) (any, error) {
	var request struct {
		Context *[]current `json:"context"`
		Actions []action   `json:"actions"`
		Fields  []string   `json:"fields"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		return nil, &failure{400, "bad-argument", err.Error()}
	}
	if request.Context == nil {
		return nil, &failure{400, "missing-context", "context is missing"}
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		return nil, &failure{400, "missing-header", "Content-Type"}
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{}
	results := []map[string]any{}
	for _, a := range request.Actions {
		if a.Key == "" || seen[a.Key] {
			return nil, &failure{400, "instance-key-not-unique", "instance-key"}
		}
		seen[a.Key] = true
		result := s.act(a, *request.Context)
		result["instance-key"] = a.Key
		results = append(results, result)
	}

	rand.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
	return map[string]any{"error-list": []any{}, "results": results}, nil
}

// act carries out one action of a refresh request.
func (s *Server) act(a action, contexts []current) map[string]any {
	i := slices.IndexFunc(s.charms, func(c Charm) bool { return a.Name != "" && c.Name == a.Name || a.Name == "" && c.ID == a.ID })
	if i < 0 {
		code := "name-not-found"
		if a.Name == "" {
			code = "id-not-found"
		}
		return refusal(a, nil, code, "The Charm with the given name was not found in the Store.", nil)
	}
	c := s.charms[i]

	if a.Action == "refresh" {
		n := slices.IndexFunc(contexts, func(one current) bool { return one.Key == a.Key })
		if n < 0 {
			return refusal(a, &c, "missing-context", "no context for "+a.Key, nil)
		}
		if c.Type == "bundle" {
			return refusal(a, &c, "refresh-bundle-not-supported", "bundles cannot be refreshed", nil)
		}
		a.Channel, a.Base = &contexts[n].Tracking, contexts[n].Base
	}
	if a.Revision != nil {
		r := c.revision(*a.Revision)
		if r.Number == 0 {
			return refusal(a, &c, "revision-not-found", fmt.Sprintf("Revision %d was not found in the Store.", *a.Revision), nil)
		}
		return s.success(a, c, r, Release{}, false)
	}
	if a.Base == nil {
		return refusal(a, &c, "missing-charm-base", "a base is missing", nil)
	}

	track, risk, branch := c.channel(a.Channel)
	for _, r := range risksFrom(risk) {
		for _, b := range slices.Compact([]string{branch, ""}) {
			if found, bases := c.released(track, r, b, *a.Base); found.Revision > 0 {
				return s.success(a, c, c.revision(found.Revision), found, true)
			} else if a.Base.Name == "NA" && len(bases) > 0 {
				return refusal(a, &c, "invalid-charm-base", "Charm base is invalid.", map[string]any{"default-bases": bases})
			}
		}
	}
	releases := []any{}
	for _, r := range c.Releases {
		releases = append(releases, map[string]any{"base": r.Base, "channel": strings.TrimPrefix(r.name(), "latest/")})
	}
	return refusal(a, &c, "revision-not-found", "No revision was found in the Store.", map[string]any{"releases": releases})
}

// channel parses a channel. If the channel has no track, it belongs to the default track.
func (c Charm) channel(text *string) (track, risk, branch string) {
	if text == nil || *text == "" {
		return c.DefaultTrack, "stable", ""
	}
	parts := append(strings.Split(*text, "/"), "", "")
	if slices.Contains(risksFrom("edge"), parts[0]) {
		return c.DefaultTrack, parts[0], parts[1]
	}
	if parts[1] == "" {
		parts[1] = "stable"
	}
	return parts[0], parts[1], parts[2]
}

// risksFrom returns the risk, and the risks that replace it if it is closed.
func risksFrom(risk string) []string {
	all := []string{"edge", "beta", "candidate", "stable"}
	return all[max(0, slices.Index(all, risk)):]
}

func (c Charm) released(track, risk, branch string, b Base) (found Release, bases []Base) {
	for _, r := range c.Releases {
		if r.Track != track || r.Risk != risk || r.Branch != branch {
			continue
		}
		bases = append(bases, r.Base)
		isArch := r.Base.Architecture == b.Architecture || r.Base.Architecture == "all"
		if isArch && (r.Base.Name == b.Name && r.Base.Channel == b.Channel || c.Type == "bundle") {
			found = r
		}
	}
	return found, bases
}

func refusal(a action, c *Charm, code, message string, extra map[string]any) map[string]any {
	answer := map[string]any{
		"charm": nil, "id": nil, "name": a.Name, "released-at": nil, "result": "error",
	}
	failed := map[string]any{"code": code, "message": message}
	if extra != nil {
		failed["extra"] = extra
	}
	answer["error"] = failed
	if c != nil {
		answer["id"], answer["name"] = c.ID, c.Name
		if code == "revision-not-found" {
			answer["charm"] = map[string]any{"id": c.ID, "name": c.Name, "type": c.Type, "publisher": publisher(*c)}
		}
	}
	return answer
}

func (s *Server) success(a action, c Charm, r Revision, release Release, byChannel bool) map[string]any {
	entry := map[string]any{
		"type": c.Type, "id": c.ID, "name": c.Name, "revision": r.Number, "version": fmt.Sprint(r.Number), "summary": c.Summary,
		"license": "", "publisher": publisher(c), "created-at": at, "bases": r.Bases,
		"download":      s.fileJSON("charms", c.ID+fmt.Sprintf("_%d.charm", r.Number), r.Bytes, true),
		"metadata-yaml": r.Metadata, "config-yaml": r.Config, "actions-yaml": r.Actions,
		"resources": s.resourcesOf(c, release),
	}
	answer := map[string]any{
		"charm": entry, "id": c.ID, "name": c.Name, "result": a.Action, "released-at": at, "redirect-channel": nil, "effective-channel": nil,
	}
	if byChannel {
		answer["effective-channel"] = release.name()
	}
	if s.applies(NullCharm) {
		answer["charm"] = nil
	}
	s.spoilAnswer(answer, entry)
	if s.applies(UnknownField) {
		answer["colour"], entry["bases-of-the-future"] = "blue", []int{1}
	}
	return answer
}

// spoilAnswer changes an answer for one charm according to the fault. entry is the charm in the answer.
func (s *Server) spoilAnswer(answer, entry map[string]any) {
	const escape = "\x1b[31m\nhint: red"
	switch {
	case s.applies(OtherCharm):
		for _, part := range []map[string]any{answer, entry} {
			part["id"], part["name"] = hash("other")[:32], "other"
		}
		entry["metadata-yaml"] = "name: other\n"
	case s.applies(NoRevision):
		entry["revision"] = 0
	case s.applies(BadChannel):
		answer["effective-channel"] = "latest" + escape + "/stable"
	case s.applies(BadBase):
		entry["bases"] = []Base{{Architecture: "all", Name: "ubuntu" + escape, Channel: "24.04"}}
	case s.applies(BadResource):
		entry["resources"] = []any{map[string]any{"name": "../" + escape, "type": "file", "revision": 1}}
	}
}

func (s *Server) resourceJSON(c Charm, name string, n int) map[string]any {
	r := c.Resources[name]
	data := []byte{}
	if n > 0 && n <= len(r.Revisions) {
		data = r.Revisions[n-1]
	}
	return map[string]any{
		"name": name, "type": r.Type, "filename": r.Filename, "description": "", "revision": n, "created-at": "2024-09-10T12:00:00.000000",
		"download": s.fileJSON("resources", fmt.Sprintf("charm_%s.%s_%d", c.ID, name, n), data, false),
	}
}

// fileJSON returns a file's address, with both names for the sum, or only the old name if a fault is set.
func (s *Server) fileJSON(kind, name string, data []byte, isCharm bool) map[string]any {
	sum, size := hash(string(data)), len(data)
	if s.applies(WrongSum) {
		sum = strings.Repeat("0", 64)
	}
	if s.applies(WrongSize) {
		size++
	}
	if s.applies(HugeSize) {
		size += 1 << 40
	}

	long := sha512.Sum384(data)
	host := s.http.URL
	if s.applies(BadHost) {
		host = "http://\u009b31m.example"
	}
	entry := map[string]any{"size": size, "url": host + "/api/v1/" + kind + "/download/" + url.PathEscape(name)}
	if s.applies(OldHashes) {
		entry["hash-sha256"] = sum
		return entry
	}
	entry["hash-sha-256"] = sum
	if !isCharm {
		entry["hash-sha256"], entry["hash-sha-384"], entry["hash-sha384"] = sum, hex.EncodeToString(long[:]), hex.EncodeToString(long[:])
	}
	return entry
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// bytesOf returns the content of the file that clients download under that name.
func (s *Server) bytesOf(name string) ([]byte, bool) {
	for _, c := range s.charms {
		for _, r := range c.Revisions {
			if fmt.Sprintf("%s_%d.charm", c.ID, r.Number) == name {
				return r.Bytes, true
			}
		}
		for resource, r := range c.Resources {
			for i, data := range r.Revisions {
				if fmt.Sprintf("charm_%s.%s_%d", c.ID, resource, i+1) == name {
					return data, true
				}
			}
		}
	}
	return nil, false
}

func (s *Server) redirect(w http.ResponseWriter, r *http.Request) {
	s.note(r, nil)
	if s.spoil(w) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.bytesOf(r.PathValue("file"))
	if !ok {
		http.NotFound(w, r)
		return
	}

	to := s.http.URL
	if s.applies(OtherHost) {
		to = strings.Replace(s.other.URL, "127.0.0.1", "localhost", 1)
	}
	http.Redirect(w, r, to+"/cdn/"+hash(string(data)), http.StatusFound)
}

func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	s.note(r, nil)
	s.mu.Lock()
	var data []byte
	for _, c := range s.charms {
		for _, revision := range c.Revisions {
			if hash(string(revision.Bytes)) == r.PathValue("sum") {
				data = revision.Bytes
			}
		}
		for _, resource := range c.Resources {
			for _, one := range resource.Revisions {
				if hash(string(one)) == r.PathValue("sum") {
					data = one
				}
			}
		}
	}
	cut, slow, stopped := s.applies(Cut), s.applies(Slow), s.applies(Stopped)
	gate := s.gate
	s.mu.Unlock()

	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	half := data[:len(data)/2]
	switch {
	case cut:
		_, _ = w.Write(half)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case stopped:
		_, _ = w.Write(half)
		w.(http.Flusher).Flush()
		select {
		case <-gate:
		case <-r.Context().Done():
		}
		_, _ = w.Write(data[len(half):])
	case slow:
		for chunk := range slices.Chunk(data, max(1, len(data)/10)) {
			_, _ = w.Write(chunk)
			w.(http.Flusher).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	default:
		_, _ = w.Write(data)
	}
}

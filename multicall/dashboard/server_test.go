package dashboard

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/keys"
	"bijou/state/logs"
	"bijou/state/status"
	"bijou/state/store"
	"bijou/testscripts/kit/statetest"
)

// explainPlainly explains a unit in the tests. juju has its own texts.
func explainPlainly(u status.Unit) string { return u.WorkloadInfo().Message }

// serveTest serves an environment's page until the test ends, without a guard.
func serveTest(t *testing.T, o Options) *httptest.Server {
	t.Helper()
	s, err := newServer(o, "8080")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	h := httptest.NewUnstartedServer(s.routes())
	h.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	h.Start()
	t.Cleanup(func() {
		stop()
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

func serveEnvironment(t *testing.T, st *state.State) *httptest.Server {
	t.Helper()
	return serveTest(t, Options{Environment: &Environment{Name: "test", Version: "1", Store: "mem", State: st, Explain: explainPlainly, Owed: func(*state.View, string) (string, error) { return "", nil }}})
}

// get returns the page's text. It fails the test if it cannot get the page.
func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v\n%s", url, resp.Status, err, text)
	}
	return string(text)
}

// stream is the stream of events that a browser gets.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
	sent  *byteCount
	bytes int // as they were sent, since the last call of next
}

// byteCount counts the bytes that are read.
type byteCount struct {
	io.Reader
	n int
}

func (c *byteCount) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// openStream opens a stream as browsers do, which ask for compressed events.
func openStream(t *testing.T, url string) *stream {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip") // so that the client does not decompress it
	resp, err := http.DefaultClient.Do(request)
	if err != nil || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v %v", resp, err)
	}
	t.Cleanup(func() { resp.Body.Close() })

	sent := &byteCount{Reader: resp.Body}
	unpacked, err := gzip.NewReader(sent)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{t: t, lines: bufio.NewScanner(unpacked), sent: sent}
	s.lines.Buffer(nil, 64<<20)
	return s
}

// next decodes the data of the next event, which must have that name.
func (s *stream) next(name string, data any) {
	s.t.Helper()
	before := s.sent.n
	defer func() { s.bytes = s.sent.n - before }()
	got := ""
	for s.lines.Scan() {
		line := s.lines.Text()
		if event, ok := strings.CutPrefix(line, "event: "); ok {
			got = event
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			if got == "pulse" && name != "pulse" {
				continue
			}
			if err := json.Unmarshal([]byte(text), data); err != nil || got != name {
				s.t.Fatalf("event %q, want %q: %v", got, name, err)
			}
			return
		}
	}
	s.t.Fatalf("the stream ends: %v", s.lines.Err())
}

// readUntil returns all rows of the page by id, once n ids have the prefix.
func readUntil(t *testing.T, s *stream, prefix string, n int) map[string]row {
	t.Helper()
	var page struct{ Rows []row }
	s.next("page", &page)
	all := map[string]row{}
	for {
		found := 0
		for _, r := range page.Rows {
			all[r.ID] = r
		}
		for id := range all {
			if strings.HasPrefix(id, prefix) {
				found++
			}
		}
		if found == n {
			return all
		}
		page.Rows = nil
		s.next("rows", &page.Rows)
	}
}

// countingStore counts reads.
type countingStore struct {
	store.Store
	read *readCount
}

type readCount struct {
	mu   sync.Mutex
	keys int
}

func (c *readCount) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys += n
}

func (c *readCount) take() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, c.keys = c.keys, 0
	return n
}

func (c countingStore) Snapshot(ctx context.Context) (store.Snapshot, error) {
	s, err := c.Store.Snapshot(ctx)
	return countingSnapshot{s, c.read}, err
}

type countingSnapshot struct {
	store.Snapshot
	read *readCount
}

func (c countingSnapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	c.read.add(1)
	return c.Snapshot.Get(ctx, key)
}

func (c countingSnapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	kvs, err := c.Snapshot.List(ctx, prefix)
	c.read.add(len(kvs))
	return kvs, err
}

// TestOneChangeOfAThousandUnits checks that a change of one unit of a thousand changes only its row, is
// sent in 2 kB, and is read without the other units.
func TestOneChangeOfAThousandUnits(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 500)
	statetest.AddService(t, st, statetest.WordPress(), 500)
	r := statetest.Relate(t, st, "wordpress", "mysql")
	read := &readCount{}
	h := serveEnvironment(t, statetest.ShareWrapped(st, func(s store.Store) store.Store { return countingStore{s, read} }))
	const unit = "wordpress/407"
	statetest.Session(t, st, state.UnitAgent(unit))
	events := openStream(t, h.URL+"/environment")
	page := readUntil(t, events, "env/unit/", 1000)
	if all := read.take(); all < 1000 {
		t.Fatalf("%d keys were read at first: the count counts nothing", all)
	}
	long := ""
	for range 40 {
		// Random text, so that only the page's own words compress well.
		long += rand.Text() + " "
	}
	for _, tt := range []struct {
		what   string
		change func(tx *state.Tx) error
		units  int // rows
	}{
		{"a hook begins", func(tx *state.Tx) error {
			return tx.PutOp(unit, state.Op{ID: "1", Hook: state.Hook{Name: "install", Relation: state.NoRelation}, Started: time.Now()})
		}, 1},
		{"the charm says how it is", func(tx *state.Tx) error {
			return tx.SetUnitStatus(unit, state.WorkloadStatus{Status: "blocked", Message: "full: " + long})
		}, 1},
		{"it fails", func(tx *state.Tx) error {
			f := &state.Failure{Message: long, Stderr: long, Hook: state.Hook{Name: "install"}}
			return errors.Join(tx.ClearOp(unit), tx.PutWorkflow(unit, state.Workflow{State: "install-error", Failure: f}))
		}, 1},
		{"it is in error in its relation", func(tx *state.Tx) error {
			return tx.PutRelationState(unit, r.ID, state.RelationState{State: state.RelationError})
		}, 1},
		{"it has run a hook", func(tx *state.Tx) error {
			return tx.AddHookRun(unit, state.HookRun{Seq: 3, Hook: "start", Started: time.Now(), Ended: time.Now()})
		}, 0},
	} {
		statetest.Update(t, st, tt.change)
		var rows []row
		events.next("rows", &rows)
		units := 0
		for _, r := range rows {
			switch {
			case r.ID == "env/unit/"+unit:
				units++
			case r.ID != "env/service/wordpress" && r.ID != "env/summary" && r.ID != "env/relation/relation-1" &&
				!strings.HasPrefix(r.ID, "env/attention/") && r.ID != "env/lane/"+unit && r.ID != "env/timeline" && !strings.HasPrefix(r.ID, "run/"+unit+"/"):
				t.Errorf("%s: %s is sent, too", tt.what, r.ID)
			}
			if r.HTML == page[r.ID].HTML {
				t.Errorf("%s: %s is sent as it was", tt.what, r.ID)
			}
			page[r.ID] = r
		}
		if units != tt.units {
			t.Errorf("%s: %d rows of units, want %d", tt.what, units, tt.units)
		}
		if events.bytes > 2<<10 {
			t.Errorf("%s: %d bytes are sent, at most 2048", tt.what, events.bytes)
		}
		t.Logf("%s: %d bytes, %d keys read", tt.what, events.bytes, read.take())
	}
}

// TestHangs checks that the page shows within ten seconds that the store hangs, and later that it is
// back, although nothing can be read. A click still gets an answer.
func TestHangs(t *testing.T) {
	st := statetest.New(t)
	statetest.Pair(t, st)
	hung := &hungStore{}
	shared := statetest.ShareWrapped(st, func(s store.Store) store.Store {
		hung.Store = s
		return hung
	})
	h := serveEnvironment(t, shared)
	events := openStream(t, h.URL+"/environment")
	readUntil(t, events, "env/unit/", 2)

	hung.hang()
	var p pulse
	for events.next("pulse", &p); p.Answered; events.next("pulse", &p) {
	}
	if !strings.Contains(p.Why, "no answer for") {
		t.Errorf("%+v", p)
	}

	resp, err := http.Get(h.URL + "/detail?unit=mysql/0")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "the store has not answered") {
		t.Errorf("%s %s", resp.Status, text)
	}

	hung.answer()
	for events.next("pulse", &p); !p.Answered; events.next("pulse", &p) {
	}
}

// hungStore is a store that a test can make hang for a while.
type hungStore struct {
	store.Store
	mu   sync.Mutex
	gate chan struct{} // closed when the store answers again; nil while it answers
}

func (h *hungStore) hang() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gate = make(chan struct{})
}

func (h *hungStore) answer() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.gate)
	h.gate = nil
}

func (h *hungStore) Snapshot(ctx context.Context) (store.Snapshot, error) {
	h.mu.Lock()
	gate := h.gate
	h.mu.Unlock()

	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}

	return h.Store.Snapshot(ctx)
}

// TestAttention checks that problems for an operator come first, each with its reason, its time and the
// commands. Problems beyond the first twenty are only counted.
func TestAttention(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 30)
	statetest.AddService(t, st, statetest.WordPress(), 1)
	r := statetest.Relate(t, st, "wordpress", "mysql")
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	agents := []string{"machine-0", state.UnitAgent("wordpress/0")}
	for i := range 30 {
		agents = append(agents, state.UnitAgent(fmt.Sprint("mysql/", i)))
	}
	statetest.Session(t, st, agents...)
	statetest.Update(t, st, func(tx *state.Tx) error {
		f := &state.Failure{Message: "exit 1", Stderr: "no space left", Hook: state.Hook{Name: "install"}, Since: since}
		related := &state.Failure{Message: "exit 2", Stderr: "no route", Hook: state.Hook{Name: "db-relation-joined"}, Since: since.Add(time.Hour)}
		said := state.WorkloadStatus{Status: "blocked", Message: "no database", Since: since.Add(time.Minute)}
		return errors.Join(
			tx.SetMachineStatus("0", state.MachineRunning, ""),
			tx.PutWorkflow("mysql/7", state.Workflow{State: "install-error", Failure: f}),
			tx.SetUnitStatus("mysql/8", said),
			tx.PutWorkflow("wordpress/0", state.Workflow{State: "started"}),
			tx.PutRelationState("wordpress/0", r.ID, state.RelationState{State: state.RelationError, Failure: related}),
		)
	})
	h := serveEnvironment(t, st)
	page := readUntil(t, openStream(t, h.URL+"/environment"), "env/unit/", 31)

	for i, row := range [][]string{
		{`href="#unit=mysql%2f7"`, "install: exit 1", `datetime="2026-01-02T03:04:05Z"`, `data-copy="juju resolved --retry mysql/7"`},
		{`href="#unit=wordpress%2f0"`, "exit 2", `datetime="2026-01-02T04:04:05Z"`, `data-copy="juju resolved --retry wordpress/0 relation-1"`},
		{`href="#relation=relation-1"`, "wordpress with mysql: wordpress/0: db-relation-joined: exit 2: no route", `datetime="2026-01-02T04:04:05Z"`,
			`data-copy="juju resolved --retry wordpress/0 relation-1"`},
		{`href="#unit=mysql%2f8"`, "no database", `datetime="2026-01-02T03:05:05Z"`, `data-copy="juju show-unit mysql/8"`},
	} {
		html := page[fmt.Sprintf("env/attention/%02d", i)].HTML
		for _, want := range row {
			if !strings.Contains(html, want) {
				t.Errorf("row %d has no %s: %s", i, want, html)
			}
		}
	}

	statetest.Update(t, st, func(tx *state.Tx) (err error) {
		for i := range 30 {
			unit := fmt.Sprint("mysql/", i)
			err = errors.Join(err, tx.SetUnitStatus(unit, state.WorkloadStatus{Status: "blocked", Message: "no database"}))
		}
		return err
	})
	rows := readUntil(t, openStream(t, h.URL+"/environment"), "env/attention/", maxAttention+1)
	if more := rows["env/attention/more"].HTML; !strings.Contains(more, "and 12 more") {
		t.Errorf("%s", more)
	}
}

// TestLostMachine checks that a lost machine comes first, with its units. Neither the units nor the relations
// whose hooks have failed there have rows of their own.
func TestLostMachine(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 60)
	statetest.AddService(t, st, statetest.WordPress(), 1)
	r := statetest.Relate(t, st, "wordpress", "mysql")
	f := &state.Failure{Message: "exit 1", Hook: state.Hook{Name: "config-changed"}, Since: time.Now(), RetryAt: time.Now().Add(time.Hour)}
	statetest.Update(t, st, func(tx *state.Tx) error {
		err := errors.Join(
			tx.SetMachineStatus("0", state.MachineRunning, ""),
			tx.PutWorkflow("wordpress/0", state.Workflow{State: "started"}),
			tx.PutRelationState("wordpress/0", r.ID, state.RelationState{State: state.RelationError, Failure: f}),
		)
		for i := range 60 {
			err = errors.Join(err, tx.PutWorkflow(fmt.Sprint("mysql/", i), state.Workflow{State: "config-changed-error", Failure: f}))
		}
		// Only the last hook says when the machine still ran, even if it is too old for the timeline.
		for i := range 2 {
			ended := time.Date(2026, 1, 2, 3, i, 0, 0, time.UTC)
			err = errors.Join(err, tx.AddHookRun(fmt.Sprint("mysql/", i), state.HookRun{Hook: "start", Started: ended, Ended: ended}))
		}
		return err
	})
	h := serveEnvironment(t, st)
	page := readUntil(t, openStream(t, h.URL+"/environment"), "env/unit/", 61)

	html := page["env/attention/00"].HTML
	for _, want := range []string{"machine 0", status.LostMessage, `data-copy="juju start"`, "61 units with it", `last hook <time datetime="2026-01-02T03:01:00Z"></time> ago`, `href="#unit=mysql%2f0"`, `data-filter="down"`} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s in %s", want, html)
		}
	}
	if named := strings.Count(html, "<a "); named != maxGrouped {
		t.Errorf("%d units are named", named)
	}
	if next, more := page["env/attention/01"]; more {
		t.Errorf("it is followed by %s", next.HTML)
	}

	shown := page["env/unit/mysql/0"].HTML + get(t, h.URL+"/detail?unit=mysql/0")
	if strings.Contains(shown, "exit 1") || strings.Contains(shown, " for <time") || !strings.Contains(shown, "is gone") {
		t.Errorf("a lost unit is shown as %s", shown)
	}
	if !strings.Contains(shown, `its last hook ended <time datetime="2026-01-02T03:00:00Z"></time> ago`) {
		t.Errorf("the panel of a lost unit does not say when its last hook ended: %s", shown)
	}
}

// TestShorten checks that long texts end after a word, with an ellipsis.
func TestShorten(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"just twenty letters!":         "just twenty letters!",
		"does not fit into the twenty": "does not fit into…",
		"does not fit into xx twenty":  "does not fit into…",
		"does not fit it all twenty":   "does not fit it all…",
		"onewordthatislongerthanallof": "onewordthatislongert"[:19] + "…",
		"ünd èin längerer Satz":        "ünd èin längerer…",
	} {
		t.Run(text, func(t *testing.T) {
			if got := shorten(20, text); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestLongReasons checks that a reason that does not fit is shown up to a word, and whole in its tooltip.
func TestLongReasons(t *testing.T) {
	st := statetest.New(t)
	statetest.Pair(t, st)
	statetest.Session(t, st, state.UnitAgent("mysql/0"))
	long := strings.TrimSpace(strings.Repeat("certificates ", 30))
	statetest.Update(t, st, func(tx *state.Tx) error {
		return tx.SetUnitStatus("mysql/0", state.WorkloadStatus{Status: "blocked", Message: long})
	})
	page := readUntil(t, openStream(t, serveEnvironment(t, st).URL+"/environment"), "env/unit/", 2)
	for _, id := range []string{"env/unit/mysql/0", "env/attention/00"} {
		html := page[id].HTML
		if !strings.Contains(html, `title="`+long+`"`) || !strings.Contains(html, " certificates…<") {
			t.Errorf("%s is %s", id, html)
		}
	}
}

// TestErrorSince checks that the details of a unit in error show the reason and the time of the failure, not the
// end of the last attempt.
func TestErrorSince(t *testing.T) {
	st := statetest.New(t)
	statetest.Pair(t, st)
	statetest.Session(t, st, state.UnitAgent("mysql/0"))
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	statetest.Update(t, st, func(tx *state.Tx) error {
		f := &state.Failure{Message: "exit 1", Hook: state.Hook{Name: "start"}, Since: since, Attempts: 2}
		return errors.Join(
			tx.PutWorkflow("mysql/0", state.Workflow{State: "start-error", Failure: f}),
			tx.AddHookRun("mysql/0", state.HookRun{Seq: 1, Hook: "start", Started: since.Add(time.Hour), Ended: since.Add(time.Hour), Failure: "exit 1"}),
		)
	})

	html := get(t, serveEnvironment(t, st).URL+"/detail?unit=mysql/0")
	status, _, _ := strings.Cut(html, "<h3>")
	if !strings.Contains(status, `error</span> for <time datetime="2026-01-02T03:04:05Z"></time> hook failed: start: exit 1`) || strings.Contains(status, "04:04:05") {
		t.Errorf("it is shown as %s", status)
	}
}

// TestDetailRefuses checks the answers to clicks on invalid or missing items.
func TestDetailRefuses(t *testing.T) {
	st := statetest.New(t)
	statetest.Pair(t, st)
	h := serveEnvironment(t, st)
	for query, code := range map[string]int{
		"unit=mysql/0":        http.StatusOK,
		"unit=mysql/7":        http.StatusNotFound,
		"unit=MySQL":          http.StatusBadRequest,
		"unit=../../etc":      http.StatusBadRequest,
		"run=1":               http.StatusBadRequest,
		"unit=mysql/0&run=99": http.StatusNotFound,
		"service=none":        http.StatusNotFound,
		"relation=relation-9": http.StatusNotFound,
	} {
		t.Run(query, func(t *testing.T) {
			resp, err := http.Get(h.URL + "/detail?" + query)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != code {
				t.Errorf("%s, want %d", resp.Status, code)
			}
		})
	}
}

// TestHostileTexts checks that the page shows texts from hooks and charms as plain text, without secrets and
// without characters that reverse the text.
func TestHostileTexts(t *testing.T) {
	st := statetest.New(t)
	statetest.Pair(t, st)
	const hostile = "</td><script>alert(1)</script> password=hunter2 \u202egnp.exe"
	statetest.Update(t, st, func(tx *state.Tx) error {
		return tx.SetUnitStatus("mysql/0", state.WorkloadStatus{Status: "<b>", Message: hostile})
	})
	if err := logs.Append(t.Context(), st, "mysql/0", []logs.Line{{Time: time.Now(), Level: "INFO", Hook: "install", Message: hostile}}); err != nil {
		t.Fatal(err)
	}
	h := serveEnvironment(t, st)
	row := readUntil(t, openStream(t, h.URL+"/environment"), "env/unit/", 2)["env/unit/mysql/0"].HTML
	line := ""
	for _, r := range readUntil(t, openStream(t, h.URL+"/log"), "log/", 1) {
		line = r.HTML
	}
	for _, html := range []string{row, line} {
		if strings.Contains(html, "<script") || strings.Contains(html, "<b>hunter") || strings.Contains(html, "hunter2") || strings.Contains(html, "\u202e") || !strings.Contains(html, "(hidden)") {
			t.Errorf("shown as %s", html)
		}
	}
}

// TestLog checks that the log shows the latest lines with the requested level and text, and continues with
// new lines.
func TestLog(t *testing.T) {
	st := statetest.New(t)
	say := func(unit, level, message string) {
		t.Helper()
		if err := logs.Append(t.Context(), st, unit, []logs.Line{{Time: time.Now(), Level: level, Message: message}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 400 {
		say("mysql/0", []string{"DEBUG", "INFO"}[i%2], fmt.Sprint("line ", i))
	}
	h := serveEnvironment(t, st)
	messages := func(rows []row) string {
		slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.Order, b.Order) })
		var all []string
		for _, r := range rows {
			if m := regexp.MustCompile(`<span>([^<]*)</span>`).FindStringSubmatch(r.HTML); m != nil {
				all = append(all, m[1])
			}
		}
		return strings.Join(all, ",")
	}
	var page struct{ Rows []row }
	log := openStream(t, h.URL+"/log?level=INFO&text=LINE+39")
	if log.next("page", &page); messages(page.Rows) != "line 39,line 391,line 393,line 395,line 397,line 399" {
		t.Errorf("at first %q", messages(page.Rows))
	}
	say("mysql/0", "INFO", "another")
	say("mysql/1", "WARNING", "line 39 and on")
	var rows []row
	if log.next("rows", &rows); messages(rows) != "line 39 and on" {
		t.Errorf("then %q", messages(rows))
	}
	long := openStream(t, h.URL+"/log")
	for i := range maxLogLines {
		say("mysql/2", "INFO", fmt.Sprint("more ", i))
	}
	all := map[string]row{}
	page.Rows = nil
	for long.next("page", &page); ; long.next("rows", &page.Rows) {
		for _, r := range page.Rows {
			if all[r.ID] = r; r.HTML == "" {
				delete(all, r.ID)
			}
		}
		if page.Rows = nil; strings.Contains(fmt.Sprint(all), fmt.Sprint("more ", maxLogLines-1)) {
			break
		}
	}
	if len(all) != maxLogLines {
		t.Errorf("%d lines are shown", len(all))
	}
}

// TestAway checks that the page shows when the store goes away and when it is back.
func TestAway(t *testing.T) {
	st := statetest.New(t)
	statetest.Pair(t, st)
	away := &awayStore{Store: nil}
	shared := statetest.ShareWrapped(st, func(s store.Store) store.Store {
		away.Store = s
		return away
	})
	away.set(true)
	h := serveEnvironment(t, shared)
	events := openStream(t, h.URL+"/environment")
	if note := readUntil(t, events, "away", 1)["away"]; !strings.Contains(note.HTML, "cannot be read now") {
		t.Errorf("%+v", note)
	}
	away.set(false)
	for {
		var rows []row
		events.next("rows", &rows)
		if slices.Contains(rows, row{ID: "away"}) {
			return
		}
	}
}

// TestWatchLost checks that the page still changes after its watch has ended and the store was away at that
// moment.
func TestWatchLost(t *testing.T) {
	for what, setAway := range map[string]func(s *lossyStore, away bool){
		"nothing can be read":    func(s *lossyStore, away bool) { s.set(away) },
		"nothing can be watched": func(s *lossyStore, away bool) { s.unwatchable.Store(away) },
	} {
		t.Run(what, func(t *testing.T) {
			st := statetest.New(t)
			statetest.Pair(t, st)
			lossy := &lossyStore{lost: make(chan struct{})}
			shared := statetest.ShareWrapped(st, func(s store.Store) store.Store {
				lossy.Store = s
				return lossy
			})
			h := serveEnvironment(t, shared)
			events := openStream(t, h.URL+"/environment")
			limit := time.AfterFunc(30*time.Second, h.CloseClientConnections)
			defer limit.Stop()
			readUntil(t, events, "env/unit/mysql/0", 1)
			until := func(isShown func(row) bool) {
				t.Helper()
				for {
					var rows []row
					events.next("rows", &rows)
					if slices.ContainsFunc(rows, isShown) {
						return
					}
				}
			}

			setAway(lossy, true)
			lossy.lost <- struct{}{}
			until(func(r row) bool { return r.ID == "away" && r.HTML != "" })
			setAway(lossy, false)
			until(func(r row) bool { return r == row{ID: "away"} })
			statetest.Update(t, st, func(tx *state.Tx) error {
				return tx.SetUnitStatus("mysql/0", state.WorkloadStatus{Status: "blocked", Message: "out of space"})
			})
			until(func(r row) bool { return strings.Contains(r.HTML, "out of space") })
		})
	}
}

// lossyStore is a store that can be away, and whose watchers can miss changes.
type lossyStore struct {
	awayStore
	lost        chan struct{} // each value ends one watcher
	unwatchable atomic.Bool
}

type lossyWatcher struct {
	store.Watcher
	lost chan struct{}
}

func (s *lossyStore) Watch(ctx context.Context, after int64, scope store.Scope) (store.Watcher, error) {
	if s.unwatchable.Load() {
		return nil, store.ErrAway
	}
	w, err := s.Store.Watch(ctx, after, scope)
	return lossyWatcher{w, s.lost}, err
}

func (w lossyWatcher) Next(ctx context.Context) (store.Batch, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-w.lost:
			cancel(store.ErrHistoryLost)
		case <-ctx.Done():
		}
	}()

	b, err := w.Watcher.Next(ctx)
	if err != nil && ctx.Err() != nil {
		return b, context.Cause(ctx)
	}
	return b, err
}

// TestDamage checks that the page shows missing parts of the state.
func TestDamage(t *testing.T) {
	st := statetest.New(t)
	statetest.Pair(t, st)
	statetest.Update(t, st, func(tx *state.Tx) error {
		tx.Keys().Remove("services/mysql")
		return nil
	})
	events := openStream(t, serveEnvironment(t, st).URL+"/environment")
	note := readUntil(t, events, "env/damage", 1)["env/damage"]
	if !strings.Contains(note.HTML, "the record of application &#34;mysql&#34; is missing") {
		t.Errorf("%+v", note)
	}
}

// TestRelationOfAServiceWithoutRecord checks that the page shows a box for a service that has no units and whose record
// is missing or damaged, if a relation names the service.
func TestRelationOfAServiceWithoutRecord(t *testing.T) {
	for name, damage := range map[string]func(tx *state.Tx, key string) error{
		"missing": func(tx *state.Tx, key string) error {
			tx.Keys().Remove(key)
			return nil
		},
		"damaged": func(tx *state.Tx, key string) error { return tx.Keys().Put(key, "no record") },
	} {
		t.Run(name, func(t *testing.T) {
			st := statetest.New(t)
			for _, f := range []statetest.Files{
				statetest.MySQL(),
				statetest.WordPress(),
				statetest.Meta("app", "provides: {logs: syslog}\n"),
				statetest.Meta("logger", "subordinate: true\nrequires: {host: {interface: syslog, scope: container}}\n"),
			} {
				statetest.AddService(t, st, f, 0)
			}
			related := statetest.Relate(t, st, "wordpress", "mysql")
			subordinate := statetest.Relate(t, st, "logger", "app")
			statetest.Update(t, st, func(tx *state.Tx) error {
				return errors.Join(damage(tx, "services/mysql"), damage(tx, "services/app"))
			})

			events := openStream(t, serveEnvironment(t, st).URL+"/environment")
			page := readUntil(t, events, "env/service/", 3)
			for _, id := range []string{
				"env/service/mysql", "env/service/wordpress", "env/service/app",
				"env/relation/" + related.String(), "env/relation/" + subordinate.String(),
			} {
				if page[id].HTML == "" {
					t.Errorf("%s is not on the page", id)
				}
			}
			if box := page["env/service/app"].HTML; !strings.Contains(box, `data-service="logger"`) {
				t.Errorf("the subordinate is not on its principal's box: %s", box)
			}
		})
	}
}

// TestRelationWithoutEnds checks that a relation whose record names no ends does not end the page.
func TestRelationWithoutEnds(t *testing.T) {
	st := statetest.New(t)
	r := statetest.Pair(t, st)
	key := keys.Relation(r.ID)
	statetest.Update(t, st, func(tx *state.Tx) error {
		tx.Keys().Remove(key)
		return nil
	})
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.Keys().Put(key, struct{}{}) })
	events := openStream(t, serveEnvironment(t, st).URL+"/environment")
	readUntil(t, events, "env/service/", 2)
}

// awayStore is a store that cannot be reached for a while.
type awayStore struct {
	store.Store
	mu   sync.Mutex
	away bool
}

func (a *awayStore) set(away bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.away = away
}

func (a *awayStore) Snapshot(ctx context.Context) (store.Snapshot, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.away {
		return nil, store.ErrAway
	}
	return a.Store.Snapshot(ctx)
}

// TestFleet checks that boot servers are shown in tables like neco's, and that the rows change one by one.
func TestFleet(t *testing.T) {
	bar, changed := "#>.", make(chan bool)
	h := serveTest(t, Options{Fleet: &Fleet{
		Read: func(context.Context) (FleetView, int64, error) {
			table := console.NewTable("SERVER", "STEPS", "STATE")
			table.Add("", "0", "##>", "waits for <1>")
			table.Add(console.Red, "1", bar, "failed")
			return FleetView{Facts: [][2]string{{"state", "updating"}}, Steps: []string{"etcd", "serf", "cke"}, Tables: []FleetTable{{"Servers", table}}}, 1, nil
		},
		Ask: func(context.Context) error { return nil },
		Await: func(ctx context.Context, _ int64) error {
			select {
			case <-changed:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}})
	events := openStream(t, h.URL+"/fleet")
	page := readUntil(t, events, "fleet/servers/", 2)
	if got := page["fleet/servers/1"].HTML; got != `<tr id="fleet/servers/1" class="error"><th scope="row">1</th><td class="steps"><i class="active" title="1 etcd"></i><i class="running" title="2 serf"></i><i class="" title="3 cke"></i></td><td>failed</td></tr>` {
		t.Errorf("server 1: %s", got)
	}
	if got := page["fleet/servers/0"].HTML; !strings.Contains(got, "waits for &lt;1&gt;") {
		t.Errorf("server 0: %s", got)
	}
	bar = "##!"
	changed <- true
	var rows []row
	if events.next("rows", &rows); len(rows) != 1 || rows[0].ID != "fleet/servers/1" || !strings.Contains(rows[0].HTML, `<i class="error" title="3 cke">`) {
		t.Errorf("%+v", rows)
	}
}

// TestGuard checks that a browser gets a cookie only through the link, that all other requests need the
// cookie, and that other host names are refused.
func TestGuard(t *testing.T) {
	g := newGuard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the page") }), "8080")
	g.sessions["let in"] = true
	first, next := g.token, ""
	g.used = func(token string) { next = token }
	cookie := &http.Cookie{Name: "bijou-dashboard-8080", Value: "let in"}
	for _, tt := range []struct {
		method, path, host string
		cookie             *http.Cookie
		code               int
		text               string
	}{
		{"GET", "/", "127.0.0.1:8080", nil, 403, "open the last link"},
		{"GET", "/?token=guessed", "127.0.0.1:8080", nil, 403, "open the last link"},
		{"GET", "/?token=", "127.0.0.1:8080", nil, 403, "open the last link"},
		{"GET", "/", "127.0.0.1:8080", &http.Cookie{Name: cookie.Name, Value: g.token}, 403, "open the last link"},
		{"GET", "/", "127.0.0.1:8080", &http.Cookie{Name: cookie.Name}, 403, "open the last link"},
		{"GET", "/", "127.0.0.1:8080", &http.Cookie{Name: "bijou-dashboard-8081", Value: "let in"}, 403, "open the last link"},
		{"GET", "/?token=" + g.token, "evil.example:8080", nil, 421, "localhost"},
		{"GET", "/", "evil.example", cookie, 421, "localhost"},
		{"GET", "/", "127.0.0.1.evil.example:8080", cookie, 421, "localhost"},
		{"GET", "/", "192.0.2.1", cookie, 421, "localhost"},
		{"GET", "/", "", cookie, 421, "localhost"},
		{"POST", "/", "127.0.0.1:8080", cookie, 405, "read-only"},
		{"DELETE", "/", "127.0.0.1:8080", cookie, 405, "read-only"},
		{"HEAD", "/?token=" + g.token, "127.0.0.1:8080", nil, 403, ""}, // this does not use up the link
		{"GET", "/?token=" + g.token, "127.0.0.1:8080", nil, 200, `content="0;url=/"`},
		{"GET", "/?token=" + g.token, "127.0.0.1:8080", nil, 403, "this link has been used already"},
		{"GET", "/?token=" + g.token, "127.0.0.1:8080", cookie, 200, `content="0;url=/"`}, // a browser that has the cookie
		{"GET", "/", "127.0.0.1:8080", cookie, 200, "the page"},
		{"GET", "/log", "localhost:9999", cookie, 200, "the page"}, // through ssh -L
		{"GET", "/", "[::1]:8080", cookie, 200, "the page"},
	} {
		r, w := httptest.NewRequest(tt.method, "http://x"+tt.path, nil), httptest.NewRecorder()
		if r.Host = tt.host; tt.cookie != nil {
			r.AddCookie(tt.cookie)
		}
		g.ServeHTTP(w, r)
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.text) || tt.text != "the page" && strings.Contains(w.Body.String(), "the page") {
			t.Errorf("%s %s of %s: %d %q; want %d, %q", tt.method, tt.path, tt.host, w.Code, w.Body, tt.code, tt.text)
		}
		checkHeaders(t, w.Header())
		given := w.Result().Cookies()
		if want := strings.Contains(tt.text, "url=/") && tt.cookie == nil; (len(given) > 0) != want {
			t.Errorf("%s %s of %s: cookies %v", tt.method, tt.path, tt.host, given)
		}
		for _, c := range given {
			if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Name != cookie.Name || !g.sessions[c.Value] || c.Value == "let in" || c.Domain != "" {
				t.Errorf("cookie %+v", c)
			}
		}
	}
	if next == "" || next == first || next != g.token || len(next) < 20 {
		t.Errorf("the next link has the token %q, after %q", next, first)
	}
}

func checkHeaders(t *testing.T, h http.Header) {
	t.Helper()
	policy := h.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %s", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, ":") {
		t.Errorf("the policy %q lets in what is not ours", policy)
	}
	if h.Get("Referrer-Policy") != "no-referrer" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || h.Get("X-Frame-Options") != "DENY" {
		t.Errorf("headers %v", h)
	}
	if h.Get("Access-Control-Allow-Origin") != "" {
		t.Error("others may read it")
	}
}

// TestFiles checks that all static files are small, come from this server, and follow the policy against
// inline scripts and styles.
func TestFiles(t *testing.T) {
	entries, err := static.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	forbidden := regexp.MustCompile(`(?i)<script(?: [^>]*)?>[^<]|<style|\sstyle=|\son[a-z]+=|https?://|//[a-z]|@import|\beval\(|new Function`)
	for _, e := range entries {
		text, err := static.ReadFile("static/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		// rows.html makes the rows on this side.
		if e.Name() != "rows.html" {
			total += len(text)
		}
		text = regexp.MustCompile(`(?m)^\s*// .*$|http://www\.w3\.org/2000/svg`).ReplaceAll(text, nil)
		if bad := forbidden.Find(text); bad != nil {
			t.Errorf("%s has %q", e.Name(), bad)
		}
	}
	if total > 40<<10 {
		t.Errorf("the browser loads %d bytes; at most 40 kB", total)
	}
	st := statetest.New(t)
	h := serveEnvironment(t, st)
	page := get(t, h.URL+"/")
	for _, m := range regexp.MustCompile(`(?:src|href)="(/[^"]*)"`).FindAllStringSubmatch(page, -1) {
		get(t, h.URL+m[1])
	}
	if !strings.Contains(page, "ssh -L 8080:127.0.0.1:8080") || strings.Contains(page, "Boot servers") {
		t.Error(page)
	}
}

// TestWords checks that the page's own words are application and model, not the names that the code has for them.
func TestWords(t *testing.T) {
	marks := regexp.MustCompile(`(?s)\{\{.*?\}\}|\s(?:id|class|href|src|data-[a-z]+)="[^"]*"`)
	for _, name := range []string{"page.html", "rows.html"} {
		text, err := static.ReadFile("static/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if bad := regexp.MustCompile(`(?i).*\b(services?|environments?)\b.*`).Find(marks.ReplaceAll(text, nil)); bad != nil {
			t.Errorf("%s has %q", name, bad)
		}
	}
}

func TestListen(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:0": true, "localhost:0": true, "127.8.8.8:0": true,
		":0": false, "0.0.0.0:0": false, "[::]:0": false, "192.0.2.1:0": false, "example.com:80": false, "127.0.0.1": false, "": false,
	} {
		l, err := listen(t.Context(), address)
		if (err == nil) != want {
			t.Errorf("%q: %v", address, err)
		}
		if err == nil {
			l.Close()
		} else if console.Report(io.Discard, err) != console.ExitUsage {
			t.Errorf("%q is no wrong usage: %v", address, err)
		}
	}
}

// TestServe checks that Serve prints a link that a browser can open, and ends with its context.
func TestServe(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan error)
	go func() {
		ended <- Serve(ctx, Options{Flags: Flags{Listen: "127.0.0.1:0"}, Streams: console.Streams{Out: write, Err: io.Discard}, Environment: &Environment{Name: "test", State: statetest.New(t), Explain: explainPlainly, Owed: func(*state.View, string) (string, error) { return "", nil }}})
	}()
	link, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	var text bytes.Buffer
	for _, at := range []string{strings.TrimSpace(link), link[:strings.Index(link, "?")]} {
		text.Reset()
		resp, err := browser.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = text.ReadFrom(resp.Body)
		resp.Body.Close()
	}
	if !strings.Contains(text.String(), "<h2>Applications</h2>") {
		t.Error(text.String())
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

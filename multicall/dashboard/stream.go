package dashboard

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"bijou/state/backoff"
)

const (
	settleInterval    = 100 * time.Millisecond // for changes that come together
	awayRetryInterval = time.Second
	writeTimeout      = 10 * time.Second
)

// row is a piece of the page, which is sent whole when it has changed.
type row struct {
	ID    string `json:"id"`              // of its element
	List  string `json:"list,omitempty"`  // the id of the element that it is in
	Order string `json:"order,omitempty"` // by which it stands there
	HTML  string `json:"html,omitempty"`  // empty: it is gone
}

// rows are a part of the page, by id.
type rows map[string]row

func (r rows) put(list, id, order, html string) {
	r[id] = row{id, list, order, html}
}

// live is a part of the page that changes.
type live interface {
	// read returns all rows. After an error it begins anew.
	read(ctx context.Context) (rows, error)
	// await blocks until they may have changed since.
	await(ctx context.Context) error
	// ask returns once the store has answered, and why it has not.
	ask(ctx context.Context) error
	close()
}

// reading is what one read has found.
type reading struct {
	rows rows
	err  error
}

// readOn reads a part of the page whenever it may have changed. It ends when ctx is done, and then closes
// the channel.
func readOn(ctx context.Context, l live) <-chan reading {
	readings := make(chan reading)

	go func() {
		defer close(readings)
		defer l.close()

		for ctx.Err() == nil {
			began := time.Now()
			found, err := l.read(ctx)
			took := time.Since(began)

			select {
			case readings <- reading{found, err}:
			case <-ctx.Done():
				return
			}

			// A flood leaves most of the machine to others.
			_ = backoff.Sleep(ctx, max(settleInterval, 4*took))
			if err != nil || l.await(ctx) != nil {
				_ = backoff.Sleep(ctx, awayRetryInterval)
			}
		}
	}()

	return readings
}

// stream sends server-sent events. The first is a "page" with all rows. Each later "rows" holds the rows
// that have changed, in the order of their ids. While nothing changes, or the store is away, a "pulse" says
// whether the store answers.
func (s *server) stream(w http.ResponseWriter, r *http.Request, l live) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()

	readings := readOn(ctx, l)
	pulses := takePulses(ctx, l.ask)
	defer func() {
		stop()
		for range readings { // until its reader has ended
		}
		for range pulses {
		}
	}()

	events := newEventWriter(w, r)
	sent, name := rows{}, "page"

	for {
		var err error

		select {
		case p, ok := <-pulses:
			if !ok {
				return
			}
			err = events.send("pulse", p)
		case got, ok := <-readings:
			if !ok {
				return
			}

			found := got.rows
			if got.err != nil {
				found = maps.Clone(sent)
				found.put("notes", "away", "", s.render("away", got.err.Error()))
			}

			changed := differences(sent, found)
			sent = maps.Clone(found)
			switch {
			case name == "page":
				err = events.send(name, map[string]any{
					"now":      time.Now().UnixMilli(),
					"answered": got.err == nil,
					"rows":     changed,
				})
			case len(changed) > 0:
				err = events.send(name, changed)
			}
			name = "rows"
		}

		if err != nil {
			return
		}
	}
}

// differences returns the rows that turn old into now.
func differences(old, now rows) []row {
	changed := []row{}
	for id, r := range now {
		if old[id] != r {
			changed = append(changed, r)
		}
	}

	for id := range old {
		if _, there := now[id]; !there {
			changed = append(changed, row{ID: id})
		}
	}

	slices.SortFunc(changed, func(a, b row) int { return cmp.Compare(a.ID, b.ID) })
	return changed
}

// eventWriter sends server-sent events, compressed where the browser can read that.
type eventWriter struct {
	w       io.Writer
	flush   func() error
	control *http.ResponseController
}

func newEventWriter(w http.ResponseWriter, r *http.Request) *eventWriter {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Vary", "Accept-Encoding")
	e := &eventWriter{w: w, control: http.NewResponseController(w)}
	e.flush = e.control.Flush

	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		e.w = packed
		e.flush = func() error {
			if err := packed.Flush(); err != nil {
				return err
			}
			return e.control.Flush()
		}
	}

	return e
}

func (e *eventWriter) send(name string, data any) error {
	text := bytes.NewBufferString("event: " + name + "\ndata: ")
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false) // it is read by a parser of JSON only
	if err := encoder.Encode(data); err != nil {
		return err
	}

	text.WriteString("\n")
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // where it cannot be set there is none
	if _, err := e.w.Write(text.Bytes()); err != nil {
		return err
	}

	return e.flush()
}

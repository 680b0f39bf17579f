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
	settleInterval    = 100 * time.Millisecond // the minimum pause after a read, so that one read shows several changes
	awayRetryInterval = time.Second            // the pause after a failed read
	writeTimeout      = 10 * time.Second       // how long a browser can take to read an event
)

// row is one HTML element of the page. If a part of a row changes, the whole row is sent again.
type row struct {
	ID    string `json:"id"`              // the id of its element
	List  string `json:"list,omitempty"`  // the id of the element that contains it
	Order string `json:"order,omitempty"` // the sort key in that element
	HTML  string `json:"html,omitempty"`  // empty if the row is gone
}

// rows are a part of the page, by id.
type rows map[string]row

// put adds a row, or replaces the row with the same id.
func (r rows) put(list, id, order, html string) {
	r[id] = row{id, list, order, html}
}

// live is a part of the page that changes.
type live interface {
	// read returns all rows. After an error, the next call reads everything again.
	read(ctx context.Context) (rows, error)
	// await blocks until the rows may have changed since the last read.
	await(ctx context.Context) error
	// ask returns nil once the store has answered, or the reason why it has not.
	ask(ctx context.Context) error
	// close frees resources after the last read.
	close()
}

// reading is the result of one read.
type reading struct {
	rows rows
	err  error
}

// readOn returns a channel of readings. A goroutine reads l whenever its rows may have changed, and sends the
// result to the channel, also if the read has failed. It closes l and the channel when ctx is done.
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

			// During many changes, leave most of the host's time to other processes.
			_ = backoff.Sleep(ctx, max(settleInterval, 4*took))
			// After a failed read or a failed wait, pause and read again, without a change.
			if err != nil || l.await(ctx) != nil {
				_ = backoff.Sleep(ctx, awayRetryInterval)
			}
		}
	}()

	return readings
}

// stream sends server-sent events. The first reading becomes an event "page" with all rows. Each later reading
// becomes an event "rows" with the rows that have changed, in the order of their ids, if there are any. At any
// time, also before the page, an event "pulse" reports whether the store answers. stream returns when the browser
// is gone.
func (s *server) stream(w http.ResponseWriter, r *http.Request, l live) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()

	readings := readOn(ctx, l)
	pulses := takePulses(ctx, l.ask)
	defer func() {
		// Both goroutines end with ctx, and then close their channels. Wait for that.
		stop()
		for range readings {
		}
		for range pulses {
		}
	}()

	events := newEventWriter(w, r)
	sent := rows{}  // the rows that the browser has
	event := "page" // the event for the next reading
	for {
		var err error

		select {
		case p, ok := <-pulses:
			if !ok {
				return
			}
			err = events.send("pulse", p)
		case latest, ok := <-readings:
			if !ok {
				return
			}
			sent, err = s.sendReading(events, event, latest, sent)
			event = "rows"
		}

		if err != nil {
			return // the browser is gone
		}
	}
}

// sendReading sends a reading as the event "page" or "rows". It sends no event "rows" if no row differs from sent,
// which has the rows of the browser. It returns the rows that the browser then has. After a failed reading, the
// browser keeps its rows, and also gets a note with the error.
func (s *server) sendReading(events *eventWriter, event string, got reading, sent rows) (rows, error) {
	found := got.rows
	if got.err != nil {
		found = maps.Clone(sent)
		found.put("notes", "away", "", s.render("away", got.err.Error()))
	}

	changed := differences(sent, found)
	shown := maps.Clone(found) // a copy, so that the reader can change its own map
	switch {
	case event == "page":
		return shown, events.send(event, map[string]any{
			"now":      time.Now().UnixMilli(),
			"answered": got.err == nil,
			"rows":     changed,
		})
	case len(changed) > 0:
		return shown, events.send(event, changed)
	}

	return shown, nil
}

// differences returns the rows that differ between old and now, sorted by id. A row that is gone has no HTML.
func differences(old, now rows) []row {
	changed := []row{} // not nil, which JSON would show as null
	for id, r := range now {
		if old[id] != r {
			changed = append(changed, r)
		}
	}

	for id := range old {
		if _, exists := now[id]; !exists {
			changed = append(changed, row{ID: id})
		}
	}

	slices.SortFunc(changed, func(a, b row) int { return cmp.Compare(a.ID, b.ID) })
	return changed
}

// eventWriter sends server-sent events.
type eventWriter struct {
	w       io.Writer
	flush   func() error
	control *http.ResponseController
}

// newEventWriter returns a writer of server-sent events, which it compresses if the browser accepts that.
// Each event is flushed, so that the browser gets it at once.
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

// send sends one event with the data as JSON. It returns an error if the data has no JSON, or if the browser is
// gone or does not read the event within writeTimeout.
func (e *eventWriter) send(name string, data any) error {
	text := bytes.NewBufferString("event: " + name + "\ndata: ")
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false) // only a JSON parser reads the data
	if err := encoder.Encode(data); err != nil {
		return err
	}

	// An empty line ends the event.
	text.WriteString("\n")
	// If this fails, the write below has no time limit.
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := e.w.Write(text.Bytes()); err != nil {
		return err
	}

	return e.flush()
}

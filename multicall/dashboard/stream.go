package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"bijou/state/backoff"
)

const (
	settleInterval    = 100 * time.Millisecond // for changes that come together
	awayRetryInterval = time.Second
	heartbeatInterval = 15 * time.Second // without it nobody notices that a browser is gone
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
	close()
}

// stream sends server-sent events: all rows in one "page", and then in "rows" those that change, in
// the order of their ids. A store that is away is waited for.
func (s *server) stream(w http.ResponseWriter, r *http.Request, l live) {
	defer l.close()
	w.Header().Set("Content-Type", "text/event-stream")
	name, sent := "page", rows{}

	for err := error(nil); err == nil && r.Context().Err() == nil; {
		began := time.Now()
		now, rerr := l.read(r.Context())
		if rerr != nil {
			now = maps.Clone(sent)
			now.put("notes", "away", "", s.render("away", rerr.Error()))
		}

		changed := differences(sent, now)
		switch {
		case name == "page":
			err = sendEvent(w, name, map[string]any{"now": time.Now().UnixMilli(), "rows": changed})
		case len(changed) > 0:
			err = sendEvent(w, name, changed)
		default:
			err = sendEvent(w, "beat", nil)
		}

		name, sent = "rows", maps.Clone(now)
		// A flood leaves most of the machine to others.
		_ = backoff.Sleep(r.Context(), max(settleInterval, 4*time.Since(began)))
		ctx, stop := context.WithTimeout(r.Context(), heartbeatInterval)
		if rerr != nil || l.await(ctx) != nil && ctx.Err() == nil {
			_ = backoff.Sleep(ctx, awayRetryInterval)
		}
		stop()
	}
}

// differences returns what makes the one of the other.
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

func sendEvent(w http.ResponseWriter, name string, data any) error {
	text := bytes.NewBufferString("event: " + name + "\ndata: ")
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false) // it is read by a parser of JSON only
	if err := encoder.Encode(data); err != nil {
		return err
	}

	text.WriteString("\n")
	c := http.NewResponseController(w)
	_ = c.SetWriteDeadline(time.Now().Add(writeTimeout)) // where it cannot be set there is none
	if _, err := w.Write(text.Bytes()); err != nil {
		return err
	}

	return c.Flush()
}

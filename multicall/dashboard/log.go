package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/logs"
)

// maxLogLines is the maximum number of lines of the log that the page shows.
const maxLogLines = 500

// liveLog has the last lines of the log that match a request's filter.
type liveLog struct {
	*server
	filter   logs.Filter
	lines    []logs.Line
	revision int64 // the revision that the last read has read
}

// newLiveLog returns the log with the lines of the request's level or higher that contain the request's text in their
// source, hook or message. Upper and lower case do not matter.
func newLiveLog(s *server, r *http.Request) *liveLog {
	text := strings.ToLower(r.FormValue("text"))
	containsText := func(l logs.Line) bool {
		return strings.Contains(strings.ToLower(l.Source+" "+l.Hook+" "+l.Message), text)
	}

	return &liveLog{
		server: s,
		filter: logs.Filter{Level: r.FormValue("level"), Last: maxLogLines, Matches: containsText},
	}
}

func (t *liveLog) close() {}

func (t *liveLog) ask(ctx context.Context) error { return t.askEnvironment(ctx) }

// await blocks until the log has new lines.
func (t *liveLog) await(ctx context.Context) error {
	return t.Environment.State.Await(ctx, t.revision, logs.Watch())
}

// read reads the new lines of the log that match the filter, and returns the rows of the last maxLogLines lines.
func (t *liveLog) read(ctx context.Context) (rows, error) {
	var lines []logs.Line
	var ends map[string]int64 // the number of each log's last line, by the lines' source
	err := t.Environment.State.View(ctx, func(v *state.View) (err error) {
		everySource := func(string) bool { return true }
		lines, ends, err = logs.ReadNew(v, t.filter, everySource)
		if err != nil {
			return err
		}
		t.revision, err = v.Revision()
		return err
	})
	if err != nil {
		return nil, err
	}

	t.filter.After = ends // the next read begins after these lines
	t.lines = append(t.lines, lines...)
	t.lines = t.lines[max(0, len(t.lines)-maxLogLines):]

	rendered := rows{}
	for _, l := range t.lines {
		id := fmt.Sprintf("log/%s/%s/%d", l.Time.UTC().Format(time.RFC3339Nano), l.Source, l.Seq)
		// Unlike RFC3339Nano, this format keeps trailing zeros, so that the texts sort by time.
		order := l.Time.UTC().Format("2006-01-02T15:04:05.000000000") + fmt.Sprintf(" %012d", l.Seq)
		rendered.put("log", id, order, t.render("line", map[string]any{"ID": id, "Line": l}))
	}

	return rendered, nil
}

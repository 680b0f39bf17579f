package state

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// What the log of one unit or machine holds at most: maxLogBatches batches of
// maxLogBatchBytes bytes of messages. A batch is added to until it has
// fullLogBatchBytes, so that a quiet unit's log goes far back, too.
const (
	maxLogBatches     = 64
	maxLogBatchBytes  = 64 << 10
	fullLogBatchBytes = 8 << 10
	lineOverheadBytes = 96 // what a line costs beside its message, in bytes
)

// LogLine is one line of a unit's or machine's log.
type LogLine struct {
	Source  string    `json:"-"` // the unit ("wordpress/0") or machine ("machine-0")
	Seq     int64     `json:"-"` // its number in the source's log, from 1
	Time    time.Time `json:"time"`
	Level   string    `json:"level"` // TRACE, DEBUG, INFO, WARNING, ERROR or CRITICAL
	Hook    string    `json:"hook,omitempty"`
	Message string    `json:"message"`
}

type logHead struct {
	Batch int64 `json:"batch"` // the newest batch, from 1
	Lines int64 `json:"lines"` // written so far
}

type logBatch struct {
	First int64     `json:"first"` // the Seq of its first line
	Lines []LogLine `json:"lines"`
}

func (l LogLine) size() int { return len(l.Message) + len(l.Hook) + lineOverheadBytes }

func (b logBatch) size() (n int) {
	for _, l := range b.Lines {
		n += l.size()
	}
	return n
}

// MaxLogsPerUpdate bounds the logs that AppendLogs writes: together their batches stay below what
// one transaction holds.
const MaxLogsPerUpdate = 16

// AppendLogs adds lines to the logs of units ("wordpress/0") and machines ("machine-0"), by their names. A
// log keeps its newest lines, between half a megabyte and four megabytes. A message above 64 KiB is cut,
// with a note; a file on the machine has the full text. Each log should have one writer, since two conflict
// and must run again.
func (s *State) AppendLogs(ctx context.Context, logs map[string][]LogLine) error {
	parts := map[string][][]LogLine{}
	for source, lines := range logs {
		if len(lines) > 0 {
			parts[source] = splitLines(lines)
		}
	}

	for len(parts) > 0 {
		if err := s.Update(ctx, func(tx *Tx) error { return tx.appendLogs(parts) }); err != nil {
			return fmt.Errorf("cannot log for %q: %w", slices.Sorted(maps.Keys(parts)), err)
		}

		for source, rest := range parts {
			if parts[source] = rest[1:]; len(rest) == 1 {
				delete(parts, source)
			}
		}
	}

	return nil
}

// AppendLog is AppendLogs for one.
func (s *State) AppendLog(ctx context.Context, source string, lines []LogLine) error {
	return s.AppendLogs(ctx, map[string][]LogLine{source: lines})
}

func splitLines(lines []LogLine) (parts [][]LogLine) {
	var part []LogLine
	size := 0
	for _, l := range lines {
		l.Message = Truncate(l.Message, maxLogBatchBytes-2*lineOverheadBytes-len(l.Hook))
		if size+l.size() > maxLogBatchBytes && len(part) > 0 {
			parts = append(parts, part)
			part = nil
			size = 0
		}
		part, size = append(part, l), size+l.size()
	}

	if len(part) > 0 {
		parts = append(parts, part)
	}
	return parts
}

// appendLogs appends the first part of each unit's or machine's lines. It costs two round trips, for any
// number of logs.
func (tx *Tx) appendLogs(parts map[string][][]LogLine) error {
	var headKeys, batchKeys []string
	for source := range parts {
		headKeys = append(headKeys, keys.LogHead(source))
	}

	err := tx.keys.Prefetch(headKeys...)
	heads := make(map[string]logHead, len(parts))
	for source := range parts {
		if err != nil {
			return err
		}
		heads[source], err = keyspace.LoadOrZero[logHead](tx.keys, keys.LogHead(source))
		batchKeys = append(batchKeys, keys.LogBatch(source, heads[source].Batch))
	}

	if err != nil {
		return err
	}

	if err := tx.keys.Prefetch(batchKeys...); err != nil {
		return err
	}

	for source, rest := range parts {
		if err := tx.appendLog(source, heads[source], rest[0]); err != nil {
			return err
		}
	}

	return nil
}

// appendLog appends lines to a log. The caller gives at most as many as fit in one batch.
func (tx *Tx) appendLog(source string, head logHead, lines []LogLine) error {
	batch, err := keyspace.LoadOrZero[logBatch](tx.keys, keys.LogBatch(source, head.Batch))
	if err != nil {
		return err
	}

	size := batch.size()
	if head.Batch == 0 || size >= fullLogBatchBytes || size+(logBatch{Lines: lines}).size() > maxLogBatchBytes {
		head.Batch++
		batch = logBatch{First: head.Lines + 1}
		tx.keys.Remove(keys.LogBatch(source, head.Batch-maxLogBatches))
	}

	batch.Lines = append(batch.Lines, lines...)
	head.Lines += int64(len(lines))
	if err := tx.keys.Put(keys.LogBatch(source, head.Batch), batch); err != nil {
		return err
	}

	return tx.keys.Put(keys.LogHead(source), head)
}

// LogFilter selects lines; the zero value selects all.
type LogFilter struct {
	Sources []string             // units and machines
	Level   string               // this one and those above
	Since   time.Time            // not older; zero: any
	Last    int                  // only so many of the newest, after the other filters
	Matches func(l LogLine) bool // nil: all do
	After   map[string]int64     // by source: only lines with a greater Seq
}

// Logs reads the log lines that the filter selects, by time.
func (v *View) Logs(f LogFilter) ([]LogLine, error) {
	level, lerr := LogLevel(f.Level)
	sources, serr := v.LogSources(f.Sources)
	if err := cmp.Or(lerr, serr); err != nil {
		return nil, err
	}

	var lines []LogLine
	for _, source := range sources {
		own, err := v.readSourceLog(source, level, f)
		if err != nil {
			return nil, err
		}
		lines = append(lines, own...)
	}

	slices.SortStableFunc(lines, func(a, b LogLine) int { return a.Time.Compare(b.Time) })
	if f.Last > 0 && len(lines) > f.Last {
		lines = lines[len(lines)-f.Last:]
	}
	return lines, nil
}

// NewLogs is Logs of those sources that are wanted and have grown beyond f.After, with how far
// all are: the next f.After. To follow, watch WatchLogs from the View's revision, and call it again.
func (v *View) NewLogs(
	f LogFilter,
	wants func(source string) bool,
) (lines []LogLine, ends map[string]int64, err error) {
	if ends, err = v.LogEnds(); err != nil {
		return nil, nil, err
	}

	for source, end := range ends {
		if end > f.After[source] && wants(source) {
			f.Sources = append(f.Sources, source)
		}
	}

	slices.Sort(f.Sources)
	if len(f.Sources) > 0 {
		lines, err = v.Logs(f)
	}
	return lines, ends, err
}

// LogEnds returns how many lines each source has logged so far: the Seq of its last.
func (v *View) LogEnds() (map[string]int64, error) {
	ends := map[string]int64{}
	err := readBelow(v, keys.LogHeads, func(key string, head logHead) {
		ends[strings.TrimPrefix(key, keys.LogHeads)] = head.Lines
	})
	return ends, err
}

// LogSources returns the asked sources or, if none are asked for, all units and machines that have a log.
func (v *View) LogSources(asked []string) ([]string, error) {
	if len(asked) > 0 {
		return asked, nil
	}
	kvs, err := v.keys.List(keys.LogHeads)
	if err != nil {
		return nil, err
	}

	var sources []string
	for _, kv := range kvs {
		sources = append(sources, strings.TrimPrefix(kv.Key, keys.LogHeads))
	}

	return sources, nil
}

// readSourceLog returns the lines of one log that the filter selects. It reads batches from the newest
// backwards, and stops when it has enough lines.
func (v *View) readSourceLog(source string, level int, f LogFilter) ([]LogLine, error) {
	head, _, err := keyspace.Load[logHead](v.keys, keys.LogHead(source))
	if err != nil {
		return nil, err
	}
	var lines []LogLine // the newest first

	for n := head.Batch; n > 0 && n > head.Batch-maxLogBatches; n-- {
		batch, ok, err := keyspace.Load[logBatch](v.keys, keys.LogBatch(source, n))
		if err != nil {
			return nil, err
		}

		for i, l := range slices.Backward(batch.Lines) {
			l.Source, l.Seq = source, batch.First+int64(i)
			if l.Seq > f.After[source] && levelRank(l.Level) >= level && !l.Time.Before(f.Since) &&
				(f.Matches == nil || f.Matches(l)) {
				lines = append(lines, l)
			}
		}

		if !ok || batch.First <= f.After[source]+1 || f.Last > 0 && len(lines) >= f.Last {
			break
		}
	}

	slices.Reverse(lines)
	return lines, nil
}

// LogLevel returns a level's rank; empty is the lowest.
func LogLevel(level string) (int, error) {
	if n := levelRank(level); n > 0 || level == "" {
		return n, nil
	}
	return 0, fmt.Errorf("unknown log level %q: want TRACE, DEBUG, INFO, WARNING, ERROR or CRITICAL", level)
}

// levelRank orders the levels of a log; 0 if the text is none.
func levelRank(level string) int {
	return 1 + slices.Index([]string{"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"},
		strings.ToUpper(level))
}

// RemoveLog removes all lines of a unit's or machine's log.
func (tx *Tx) RemoveLog(source string) error {
	head, _, err := keyspace.Load[logHead](tx.keys, keys.LogHead(source))
	if err != nil {
		return err
	}

	for n := head.Batch; n > 0 && n > head.Batch-maxLogBatches; n-- {
		tx.keys.Remove(keys.LogBatch(source, n))
	}
	tx.keys.Remove(keys.LogHead(source))
	return nil
}

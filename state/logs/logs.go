// Package logs keeps the logs of an environment's units and machines: their newest lines, in batches. It
// does not decide what is worth a line.
package logs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/state"
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

// Line is one line of a unit's or machine's log.
type Line struct {
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
	First int64  `json:"first"` // the Seq of its first line
	Lines []Line `json:"lines"`
}

func (l Line) size() int { return len(l.Message) + len(l.Hook) + lineOverheadBytes }

func (b logBatch) size() (n int) {
	for _, l := range b.Lines {
		n += l.size()
	}
	return n
}

// MaxPerUpdate bounds the logs that AppendAll writes: together their batches stay below what
// one transaction holds.
const MaxPerUpdate = 16

// AppendAll adds lines to the logs of units ("wordpress/0") and machines ("machine-0"), by their names. A
// log keeps its newest lines, between half a megabyte and four megabytes. A message above 64 KiB is cut,
// with a note; a file on the machine has the full text. Each log should have one writer, since two conflict
// and must run again.
func AppendAll(ctx context.Context, s *state.State, logs map[string][]Line) error {
	parts := map[string][][]Line{}
	for source, lines := range logs {
		if len(lines) > 0 {
			parts[source] = splitLines(lines)
		}
	}

	for len(parts) > 0 {
		if err := s.Update(ctx, func(tx *state.Tx) error { return appendParts(tx, parts) }); err != nil {
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

// Append is AppendAll for one.
func Append(ctx context.Context, s *state.State, source string, lines []Line) error {
	return AppendAll(ctx, s, map[string][]Line{source: lines})
}

func splitLines(lines []Line) (parts [][]Line) {
	var part []Line
	size := 0
	for _, l := range lines {
		l.Message = state.Truncate(l.Message, maxLogBatchBytes-2*lineOverheadBytes-len(l.Hook))
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

// appendParts appends the first part of each unit's or machine's lines. It costs two round trips, for any
// number of logs.
func appendParts(tx *state.Tx, parts map[string][][]Line) error {
	var headKeys, batchKeys []string
	for source := range parts {
		headKeys = append(headKeys, keys.LogHead(source))
	}

	err := tx.Keys().Prefetch(headKeys...)
	heads := make(map[string]logHead, len(parts))
	for source := range parts {
		if err != nil {
			return err
		}
		heads[source], err = keyspace.LoadOrZero[logHead](tx.Keys(), keys.LogHead(source))
		batchKeys = append(batchKeys, keys.LogBatch(source, heads[source].Batch))
	}

	if err != nil {
		return err
	}

	if err := tx.Keys().Prefetch(batchKeys...); err != nil {
		return err
	}

	for source, rest := range parts {
		if err := appendPart(tx, source, heads[source], rest[0]); err != nil {
			return err
		}
	}

	return nil
}

// appendPart appends lines to a log. The caller gives at most as many as fit in one batch.
func appendPart(tx *state.Tx, source string, head logHead, lines []Line) error {
	batch, err := keyspace.LoadOrZero[logBatch](tx.Keys(), keys.LogBatch(source, head.Batch))
	if err != nil {
		return err
	}

	size := batch.size()
	if head.Batch == 0 || size >= fullLogBatchBytes || size+(logBatch{Lines: lines}).size() > maxLogBatchBytes {
		head.Batch++
		batch = logBatch{First: head.Lines + 1}
		tx.Keys().Remove(keys.LogBatch(source, head.Batch-maxLogBatches))
	}

	batch.Lines = append(batch.Lines, lines...)
	head.Lines += int64(len(lines))
	if err := tx.Keys().Put(keys.LogBatch(source, head.Batch), batch); err != nil {
		return err
	}

	return tx.Keys().Put(keys.LogHead(source), head)
}

// Filter selects lines; the zero value selects all.
type Filter struct {
	Sources []string          // units and machines
	Level   string            // this one and those above
	Since   time.Time         // not older; zero: any
	Last    int               // only so many of the newest, after the other filters
	Matches func(l Line) bool // nil: all do
	After   map[string]int64  // by source: only lines with a greater Seq
}

// Read reads the log lines that the filter selects, by time.
func Read(v *state.View, f Filter) ([]Line, error) {
	level, lerr := ParseLevel(f.Level)
	sources, serr := Sources(v, f.Sources)
	if err := cmp.Or(lerr, serr); err != nil {
		return nil, err
	}

	var lines []Line
	for _, source := range sources {
		own, err := readSource(v, source, level, f)
		if err != nil {
			return nil, err
		}
		lines = append(lines, own...)
	}

	slices.SortStableFunc(lines, func(a, b Line) int { return a.Time.Compare(b.Time) })
	if f.Last > 0 && len(lines) > f.Last {
		lines = lines[len(lines)-f.Last:]
	}
	return lines, nil
}

// ReadNew is Read of those sources that are wanted and have grown beyond f.After, with how far
// all are: the next f.After. To follow, watch Watch from the View's revision, and call it again.
func ReadNew(v *state.View,
	f Filter,
	wants func(source string) bool,
) (lines []Line, ends map[string]int64, err error) {
	if ends, err = Ends(v); err != nil {
		return nil, nil, err
	}

	for source, end := range ends {
		if end > f.After[source] && wants(source) {
			f.Sources = append(f.Sources, source)
		}
	}

	slices.Sort(f.Sources)
	if len(f.Sources) > 0 {
		lines, err = Read(v, f)
	}
	return lines, ends, err
}

// Ends returns how many lines each source has logged so far: the Seq of its last.
func Ends(v *state.View) (map[string]int64, error) {
	ends := map[string]int64{}
	err := state.ReadBelow(v, keys.LogHeads, func(key string, head logHead) {
		ends[strings.TrimPrefix(key, keys.LogHeads)] = head.Lines
	})
	return ends, err
}

// Sources returns the asked sources or, if none are asked for, all units and machines that have a log.
func Sources(v *state.View, asked []string) ([]string, error) {
	if len(asked) > 0 {
		return asked, nil
	}
	kvs, err := v.Keys().List(keys.LogHeads)
	if err != nil {
		return nil, err
	}

	var sources []string
	for _, kv := range kvs {
		sources = append(sources, strings.TrimPrefix(kv.Key, keys.LogHeads))
	}

	return sources, nil
}

// readSource returns the lines of one log that the filter selects. It reads batches from the newest
// backwards, and stops when it has enough lines.
func readSource(v *state.View, source string, level int, f Filter) ([]Line, error) {
	head, _, err := keyspace.Load[logHead](v.Keys(), keys.LogHead(source))
	if err != nil && !v.Keys().Skips(err) {
		return nil, err
	}
	var lines []Line // the newest first

	for n := head.Batch; n > 0 && n > head.Batch-maxLogBatches; n-- {
		batch, ok, err := keyspace.Load[logBatch](v.Keys(), keys.LogBatch(source, n))
		if v.Keys().Skips(err) {
			continue
		}
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

// Watch returns the scope of the logs of the given units and machines; if none are given, of all.
func Watch(sources ...string) state.Scope {
	if len(sources) == 0 {
		return keyspace.Below(keys.LogHeads)
	}

	var s state.Scope
	for _, source := range sources {
		s.Keys = append(s.Keys, keys.LogHead(source))
	}
	return s
}

// ParseLevel returns a level's rank; empty is the lowest.
func ParseLevel(level string) (int, error) {
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

// Remove removes all lines of a unit's or machine's log.
func Remove(tx *state.Tx, source string) error {
	head, _, err := keyspace.Load[logHead](tx.Keys(), keys.LogHead(source))
	if tx.Keys().Skips(err) {
		// It does not say which batches there are.
		_, err = tx.Keys().RemoveBelow(strings.TrimSuffix(keys.LogBatch(source, 0), "0000000000"), maxLogBatches)
	}
	if err != nil {
		return err
	}

	for n := head.Batch; n > 0 && n > head.Batch-maxLogBatches; n-- {
		tx.Keys().Remove(keys.LogBatch(source, n))
	}
	tx.Keys().Remove(keys.LogHead(source))
	return nil
}

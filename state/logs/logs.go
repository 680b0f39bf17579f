// Package logs stores the newest log lines of an environment's units and machines, in batches. It does not
// decide which lines are logged.
package logs

import (
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

const (
	// maxLogBatches is how many batches the log of one unit or machine has.
	maxLogBatches = 64
	// maxLogBatchBytes limits one batch, in bytes.
	maxLogBatchBytes = 64 << 10
	// fullLogBatchBytes is the size of a full batch, in bytes. Lines are added to the newest batch until it
	// is full, so that the log of a quiet unit covers a long time.
	fullLogBatchBytes = 8 << 10
	// lineOverheadBytes is the size of a line's record without its message and hook, in bytes.
	lineOverheadBytes = 96
)

// Line is one line of a unit's or machine's log.
type Line struct {
	Source  string    `json:"-"` // the unit ("wordpress/0") or machine ("machine-0")
	Seq     int64     `json:"-"` // the line's number in the source's log, from 1
	Time    time.Time `json:"time"`
	Level   string    `json:"level"` // TRACE, DEBUG, INFO, WARNING, ERROR or CRITICAL
	Hook    string    `json:"hook,omitempty"`
	Message string    `json:"message"`
}

// logHead is the record of how many batches and lines a log has had. The lines are in the batches.
type logHead struct {
	Batch int64 `json:"batch"` // the number of the newest batch, from 1
	Lines int64 `json:"lines"` // how many lines were written so far
}

// logBatch is a record of consecutive lines of a log.
type logBatch struct {
	First int64  `json:"first"` // the Seq of the first line
	Lines []Line `json:"lines"`
}

// sizeOf returns the size of a record in the store, in bytes. In the store, a control character of a message
// takes up to six bytes.
func sizeOf(record any) int {
	data, _ := keyspace.Encode("", record) // if this fails, so does the commit of the record
	return len(data)
}

// MaxPerUpdate limits the logs that one call of AppendAll can write, so that their batches and heads fit in
// one transaction.
const MaxPerUpdate = 15

// AppendAll adds lines to logs. The keys of logs are the names of units ("wordpress/0") and machines
// ("machine-0"). A log keeps its newest lines, between 512 KiB and 4 MiB. AppendAll shortens the message of a
// line that would take more than about 64 KiB in the store, and notes that in the message. A file on the machine
// contains the full text. Each log should have only one writer, since the transactions of two writers would
// conflict.
//
// Lines that do not fit in one batch take several transactions. If one of these fails, the lines of the earlier
// transactions are written. written is how many of each log's lines were written, also after an error. It cannot
// include a transaction to which the store gave no answer.
func AppendAll(ctx context.Context, s *state.State, logs map[string][]Line) (written map[string]int, err error) {
	parts := map[string][][]Line{}
	for source, lines := range logs {
		if len(lines) > 0 {
			parts[source] = splitLines(lines)
		}
	}

	written = map[string]int{}
	for len(parts) > 0 {
		if err := s.Update(ctx, func(tx *state.Tx) error { return appendParts(tx, parts) }); err != nil {
			return written, fmt.Errorf("cannot write the logs of %q: %w", slices.Sorted(maps.Keys(parts)), err)
		}

		// The first part of each log is written.
		for source, remaining := range parts {
			written[source] += len(remaining[0])
			parts[source] = remaining[1:]
			if len(remaining) == 1 {
				delete(parts, source)
			}
		}
	}

	return written, nil
}

// Append does what AppendAll does, for the log of one unit or machine.
func Append(ctx context.Context, s *state.State, source string, lines []Line) error {
	_, err := AppendAll(ctx, s, map[string][]Line{source: lines})
	return err
}

// splitLines splits lines into parts that each fit in one batch. It shortens lines that do not fit.
func splitLines(lines []Line) (parts [][]Line) {
	var part []Line
	size := 0
	for _, l := range lines {
		l = shorten(l)
		n := sizeOf(l)
		if size+n > maxLogBatchBytes && len(part) > 0 {
			parts = append(parts, part)
			part = nil
			size = 0
		}

		part = append(part, l)
		size += n
	}

	if len(part) > 0 {
		parts = append(parts, part)
	}
	return parts
}

// shorten shortens the line's message until the line fits in a batch. A message can need several attempts,
// since it can take up to six times its length in the store.
func shorten(l Line) Line {
	message := l.Message
	// Leave room for the line's other fields, with some to spare.
	limit := maxLogBatchBytes - 2*lineOverheadBytes - len(l.Hook)
	l.Message = state.Truncate(message, limit)
	// If a message of lineOverheadBytes is still too long, the line's other fields are the cause.
	for sizeOf(l) > maxLogBatchBytes && limit > lineOverheadBytes {
		limit /= 2
		// Truncate the whole message, so that the note at its end counts all missing bytes.
		l.Message = state.Truncate(message, limit)
	}

	return l
}

// appendParts appends the first part of each log's lines, in tx. It needs two round trips for any number of
// logs: one for the heads, and one for the newest batches.
func appendParts(tx *state.Tx, parts map[string][][]Line) error {
	var headKeys []string
	for source := range parts {
		headKeys = append(headKeys, keys.LogHead(source))
	}
	if err := tx.Keys().Prefetch(keyspace.Exactly(headKeys...)); err != nil {
		return err
	}

	heads := make(map[string]logHead, len(parts))
	var batchKeys []string
	for source := range parts {
		head, err := keyspace.LoadOrZero[logHead](tx.Keys(), keys.LogHead(source))
		if err != nil {
			return err
		}
		heads[source] = head
		batchKeys = append(batchKeys, keys.LogBatch(source, head.Batch))
	}
	if err := tx.Keys().Prefetch(keyspace.Exactly(batchKeys...)); err != nil {
		return err
	}

	for source, remaining := range parts {
		if err := appendPart(tx, source, heads[source], remaining[0]); err != nil {
			return err
		}
	}

	return nil
}

// appendPart appends lines, which must fit in one batch, to a log. It adds them to the newest batch. If that
// batch is full, has no room for the lines, is missing or is damaged, appendPart begins a new batch, and removes the
// oldest batch beyond maxLogBatches.
func appendPart(tx *state.Tx, source string, head logHead, lines []Line) error {
	newest := keys.LogBatch(source, head.Batch)
	batch, isUsable, err := keyspace.Load[logBatch](tx.Keys(), newest)
	if tx.Keys().Skips(err) {
		isUsable = false
		err = nil
	}
	if err != nil {
		return err
	}
	stored, _, err := tx.Keys().Get(newest) // again, for its size in the store
	if err != nil {
		return err
	}

	size := len(stored)
	isFull := size >= fullLogBatchBytes || size+sizeOf(lines) > maxLogBatchBytes
	if !isUsable || isFull {
		head.Batch++
		batch = logBatch{First: head.Lines + 1}
		// A log with fewer batches does not have this key.
		tx.Keys().Remove(keys.LogBatch(source, head.Batch-maxLogBatches))
	}

	batch.Lines = append(batch.Lines, lines...)
	head.Lines += int64(len(lines))
	if err := tx.Keys().Put(keys.LogBatch(source, head.Batch), batch); err != nil {
		return err
	}

	return tx.Keys().Put(keys.LogHead(source), head)
}

// Filter selects lines. The zero value selects all lines.
type Filter struct {
	Sources []string          // only lines of these units and machines; empty means all
	Level   string            // only lines of this level or higher; empty means all
	Since   time.Time         // only lines from this time on; zero means any time
	Last    int               // only the newest lines, this many, of those that the other fields select; 0 means all
	Matches func(l Line) bool // only lines for which Matches returns true; nil means all lines
	After   map[string]int64  // for each source, only lines with a greater Seq
}

// Read reads the log lines that the filter selects, sorted by time.
func Read(v *state.View, f Filter) ([]Line, error) {
	level, err := ParseLevel(f.Level)
	if err != nil {
		return nil, err
	}
	sources, err := Sources(v, f.Sources)
	if err != nil {
		return nil, err
	}

	var lines []Line
	for _, source := range sources {
		ofSource, err := readSource(v, source, level, f)
		if err != nil {
			return nil, err
		}
		lines = append(lines, ofSource...)
	}

	slices.SortStableFunc(lines, func(a, b Line) int { return a.Time.Compare(b.Time) })
	if f.Last > 0 && len(lines) > f.Last {
		lines = lines[len(lines)-f.Last:]
	}
	return lines, nil
}

// ReadNew reads the lines after f.After that the filter selects, from each source for which wants returns
// true. f.Sources must be empty. ReadNew also returns the ends of all logs, for the next f.After. To follow logs,
// wait for changes of the scope [Watch] after the View's revision, and call ReadNew again.
func ReadNew(
	v *state.View, f Filter, wants func(source string) bool,
) (lines []Line, ends map[string]int64, err error) {
	ends, err = Ends(v)
	if err != nil {
		return nil, nil, err
	}

	for source, end := range ends {
		if end > f.After[source] && wants(source) {
			f.Sources = append(f.Sources, source)
		}
	}

	if len(f.Sources) == 0 {
		return nil, ends, nil
	}
	slices.Sort(f.Sources)
	lines, err = Read(v, f)
	return lines, ends, err
}

// Ends returns how many lines each source has logged so far. This number is the Seq of the source's last line.
func Ends(v *state.View) (map[string]int64, error) {
	ends := map[string]int64{}
	err := state.ReadBelow(v, keys.LogHeads, func(key string, head logHead) {
		ends[strings.TrimPrefix(key, keys.LogHeads)] = head.Lines
	})
	return ends, err
}

// Sources returns the requested sources. If no sources are requested, it returns all units and machines that
// have a log.
func Sources(v *state.View, requested []string) ([]string, error) {
	if len(requested) > 0 {
		return requested, nil
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

// readSource returns the lines of one log that the filter selects. level is the rank of f.Level. readSource
// reads batches from the newest backwards, and stops when it has enough lines. It skips damaged records.
func readSource(v *state.View, source string, level int, f Filter) ([]Line, error) {
	head, _, err := keyspace.Load[logHead](v.Keys(), keys.LogHead(source))
	// A log with a damaged head counts as empty.
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
			l.Source = source
			l.Seq = batch.First + int64(i)
			if f.selects(l, level) {
				lines = append(lines, l)
			}
		}

		// If this batch was removed, so were all older ones.
		hasOlderLines := ok && batch.First > f.After[source]+1
		hasEnough := f.Last > 0 && len(lines) >= f.Last
		if !hasOlderLines || hasEnough {
			break
		}
	}

	slices.Reverse(lines)
	return lines, nil
}

// selects reports whether the filter selects a line. level is the rank of f.Level. selects ignores Sources and
// Last.
func (f Filter) selects(l Line, level int) bool {
	isNew := l.Seq > f.After[l.Source]
	if !isNew || levelRank(l.Level) < level || l.Time.Before(f.Since) {
		return false
	}
	return f.Matches == nil || f.Matches(l)
}

// Watch returns the [state.Scope] of the logs of the given units and machines. If no sources are given, it
// returns the scope of all logs. The scope contains only the heads, since each new line changes the log's head.
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

// ParseLevel returns a level's rank, from 1 for TRACE. It returns 0 for an empty level, and an error for an
// unknown level.
func ParseLevel(level string) (int, error) {
	if level == "" {
		return 0, nil
	}

	rank := levelRank(level)
	if rank == 0 {
		return 0, fmt.Errorf("unknown log level %q: want TRACE, DEBUG, INFO, WARNING, ERROR or CRITICAL", level)
	}
	return rank, nil
}

// levelRank returns the rank of a level, from 1 for TRACE. It returns 0 if the text is not a level.
func levelRank(level string) int {
	levels := []string{"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}
	i := slices.Index(levels, strings.ToUpper(level)) // -1 if the text is not a level
	return i + 1
}

// Remove removes all lines of a unit's or machine's log.
func Remove(tx *state.Tx, source string) error {
	head, _, err := keyspace.Load[logHead](tx.Keys(), keys.LogHead(source))
	if tx.Keys().Skips(err) {
		// The head is damaged, so the numbers of the batches are unknown, and the batches must be listed.
		batchPrefix := strings.TrimSuffix(keys.LogBatch(source, 0), "0000000000")
		_, err = tx.Keys().RemoveBelow(batchPrefix, maxLogBatches)
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

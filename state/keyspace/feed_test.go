package keyspace

import (
	"errors"
	"testing"
)

// TestFeedKeepsTheEnd checks that the error that ended the watch is kept until Take, whatever is pushed after it.
func TestFeedKeepsTheEnd(t *testing.T) {
	f := NewFeed()
	f.End(ErrHistoryLost)
	f.Invalidate()
	f.push(ChangeSet{Changes: []Change{{}}})
	if got := f.Take(); !got.All || !errors.Is(got.Err, ErrHistoryLost) {
		t.Errorf("%+v, want all and %v", got, ErrHistoryLost)
	}
	if got := f.Take(); got.All || got.Err != nil || len(got.Changes) > 0 {
		t.Errorf("%+v after Take", got)
	}
}

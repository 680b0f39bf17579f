package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"

	"bijou/state/store"
	"bijou/state/store/remote/protocol"
)

// snapshot is one gRPC call of Read, which begins with the snapshot's first read. If the call breaks, the
// snapshot is lost, and its reads return ErrHistoryLost.
type snapshot struct {
	d *db

	mu       sync.Mutex // one read at a time
	closed   bool
	revision int64 // 0 before the first read
	lost     bool  // whether a read after the first has failed
	stream   grpc.BidiStreamingClient[protocol.ReadRequest, protocol.ReadResponse]
	cancel   context.CancelFunc
	fetched  map[string]store.KV   // the keys that Prefetch has read; the Revision of an absent key is 0
	listed   map[string][]store.KV // the lists that Prefetch has read, by prefix
}

// Snapshot returns a snapshot, and asks the gateway for nothing yet.
func (d *db) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if err := d.CheckUsable(ctx); err != nil {
		return nil, err
	}
	return &snapshot{d: d}, nil
}

// Get returns one key. It asks the gateway, unless Prefetch has read the key. It returns ErrDenied if the
// process has no right to read the key.
func (s *snapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kv, ok := s.fetched[key]; ok {
		exists := kv.Revision != 0
		return kv, exists, s.checkUsable(ctx)
	}

	read, err := s.read(ctx, &protocol.ReadRequest{Keys: [][]byte{[]byte(key)}})
	if err != nil {
		return store.KV{}, false, err
	}
	if len(read.denied) > 0 {
		return store.KV{}, false, fmt.Errorf("cannot read %q: %w", key, store.ErrDenied)
	}
	if len(read.found) == 0 {
		return store.KV{}, false, nil
	}

	return read.found[0], true, nil
}

// maxPrefetched is the largest number of keys that Prefetch reads with one request.
const maxPrefetched = 256

// Prefetch reads the keys, up to maxPrefetched with each request, and keeps them for Get. If it is the
// snapshot's first read, it also reads the first of the lists, for List. Prefetch ignores the other lists. It
// skips keys and a list that the process has no right to read. Get and List then return the error.
func (s *snapshot) Prefetch(ctx context.Context, next store.Scope) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	// The list and the first keys fit into one request. The remaining keys follow below. Only the first request
	// has a list, since the snapshot is lost if the list of a later request is denied.
	keys := next.Keys
	if s.revision == 0 && len(next.Prefixes) > 0 {
		n := min(len(keys), maxPrefetched)
		err := s.prefetchWithList(ctx, keys[:n], next.Prefixes[0])
		if err != nil && !errors.Is(err, store.ErrDenied) {
			return err
		}
		// If the list is denied, the request has read no keys.
		if err == nil {
			keys = keys[n:]
		}
	}

	for chunk := range slices.Chunk(keys, maxPrefetched) {
		read, err := s.read(ctx, &protocol.ReadRequest{Keys: protocol.FromKeys(chunk)})
		if err != nil {
			return err
		}
		s.keepFetched(chunk, read)
	}

	return nil
}

// prefetchWithList reads keys and a list with the snapshot's first request. If the process has no right to
// read the list, prefetchWithList returns ErrDenied, and the next request is again the snapshot's first.
func (s *snapshot) prefetchWithList(ctx context.Context, keys []string, prefix string) error {
	read, err := s.read(ctx, &protocol.ReadRequest{Keys: protocol.FromKeys(keys), List: true, Prefix: []byte(prefix)})
	if err != nil {
		return err
	}

	// The answer has the requested keys that exist, and after them the list. A requested key that is also in
	// the list occurs twice.
	listed := slices.DeleteFunc(slices.Clone(read.found), func(kv store.KV) bool { return !strings.HasPrefix(kv.Key, prefix) })
	slices.SortFunc(listed, func(a, b store.KV) int { return strings.Compare(a.Key, b.Key) })
	listed = slices.CompactFunc(listed, func(a, b store.KV) bool { return a.Key == b.Key })
	s.listed = map[string][]store.KV{prefix: listed}

	s.keepFetched(keys, read)
	return nil
}

// keepFetched keeps the answer to a request for the keys, for later calls of Get. If the request also had a
// list, it also keeps the keys of the list.
func (s *snapshot) keepFetched(keys []string, read answer) {
	if s.fetched == nil {
		s.fetched = map[string]store.KV{}
	}

	// Keep each requested key as absent first. The keys that exist follow. A denied key is not kept, so that Get
	// asks the gateway, and returns the error.
	for _, key := range keys {
		if !slices.Contains(read.denied, key) {
			s.fetched[key] = store.KV{Key: key}
		}
	}
	for _, kv := range read.found {
		s.fetched[kv.Key] = kv
	}
}

// List returns the keys with the prefix, and their values. It asks the gateway, unless Prefetch has read the
// list. It returns ErrDenied if the process has no right to read the list.
func (s *snapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kvs, ok := s.listed[prefix]; ok {
		return slices.Clone(kvs), s.checkUsable(ctx)
	}

	read, err := s.read(ctx, &protocol.ReadRequest{List: true, Prefix: []byte(prefix)})
	return read.found, err
}

// Revision returns the snapshot's revision. It asks the gateway if nothing was read yet.
func (s *snapshot) Revision(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revision != 0 {
		return s.revision, s.checkUsable(ctx)
	}

	// A request without keys only fixes the revision.
	_, err := s.read(ctx, &protocol.ReadRequest{})
	return s.revision, err
}

// Close ends the call of Read. It is idempotent.
func (s *snapshot) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.endStream()
}

// endStream ends the call of Read, if there is one.
func (s *snapshot) endStream() {
	if s.cancel != nil {
		s.cancel()
	}
	s.stream = nil
	s.cancel = nil
}

// checkUsable returns an error if the snapshot is closed, if the store cannot be used, or if ctx is done. The
// caller holds s.mu.
func (s *snapshot) checkUsable(ctx context.Context) error {
	if s.closed {
		return store.ErrClosed
	}
	return s.d.CheckUsable(ctx)
}

// answer holds all responses to one request.
type answer struct {
	found  []store.KV // the keys that exist
	denied []string   // the keys that the process has no right to read
}

// read sends a request to the gateway. It repeats the first request, which fixes the snapshot's revision,
// until the gateway answers, for at most callTimeout. If a later request fails for any reason, the snapshot is
// lost, since its call of Read has ended, and a new call would fix a new revision. read returns
// ErrHistoryLost if the snapshot was lost before, or if a broken connection loses it now. It returns ErrDenied
// if the process has no right to read the request's list. The caller holds s.mu.
func (s *snapshot) read(ctx context.Context, request *protocol.ReadRequest) (a answer, err error) {
	if err := s.checkUsable(ctx); err != nil {
		return answer{}, err
	}
	if s.lost {
		return answer{}, store.ErrHistoryLost
	}

	if s.revision == 0 {
		err = s.d.retry(ctx, func(bound context.Context) (err error) {
			a, err = s.ask(bound, request)
			return err
		})
		return a, err
	}

	bound, cancel := s.d.Bound(ctx, callTimeout)
	defer cancel()
	a, err = s.ask(bound, request)
	if err == nil {
		return a, nil
	}

	// If the connection broke, the caller can begin again with a new snapshot. If the time was over, the gateway
	// does not answer, and storeError says so. storeError also translates the gateway's own errors.
	s.lost = true
	if isTransient(err) && bound.Err() == nil {
		return answer{}, store.ErrHistoryLost
	}
	return answer{}, s.d.storeError(ctx, err)
}

// ask sends a request and receives its answer. It opens the stream if there is none. If ctx ends meanwhile,
// or after any other error, it ends the stream.
func (s *snapshot) ask(ctx context.Context, request *protocol.ReadRequest) (a answer, err error) {
	defer func() {
		if err != nil {
			s.endStream()
		}
	}()

	before := s.d.seen.Load()

	// The stream has its own context, since later reads use the stream after this read's ctx has ended. Only
	// during a call that uses the stream, the end of ctx cancels it.
	if s.cancel == nil {
		var streamCtx context.Context
		streamCtx, s.cancel = context.WithCancel(s.d.Context())
		stop := context.AfterFunc(ctx, s.cancel)
		s.stream, err = s.d.client.Read(streamCtx)
		if err = stopCancel(ctx, stop, err); err != nil {
			return a, err
		}
	}

	stop := context.AfterFunc(ctx, s.cancel)
	a, err = s.exchange(before, request)
	return a, stopCancel(ctx, stop, err)
}

// stopCancel calls stop, so that the end of ctx no longer cancels the stream. It returns err, the result of
// the call that used the stream. If ctx has already ended and err is nil, it returns ctx's error, since the
// stream was canceled.
func stopCancel(ctx context.Context, stop func() bool, err error) error {
	if !stop() && err == nil {
		return context.Cause(ctx)
	}
	return err
}

// exchange sends a request on the snapshot's stream, and collects the parts of its answer. The first answer
// fixes the snapshot's revision. before is the newest revision that was known before the request. If the first
// answer is from an older revision, exchange returns an error that wraps errOlder.
func (s *snapshot) exchange(before int64, request *protocol.ReadRequest) (a answer, err error) {
	if err := s.stream.Send(request); err != nil {
		// Recv returns the reason.
		_, err = s.stream.Recv()
		return a, err
	}

	for {
		response, err := s.stream.Recv()
		if err != nil {
			return a, err
		}

		for _, kv := range response.GetFound() {
			a.found = append(a.found, kv.KV())
		}
		a.denied = append(a.denied, protocol.ToKeys(response.GetDenied())...)
		if response.GetMore() {
			continue
		}

		if s.revision == 0 {
			if err := s.d.observe(before, response.GetRevision()); err != nil {
				return a, err
			}
			s.revision = response.GetRevision()
		}
		return a, nil
	}
}

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

// snapshot is one call of Read, which begins with the first read. It is lost if the connection breaks.
type snapshot struct {
	d *db

	mu       sync.Mutex // one read at a time
	closed   bool
	revision int64 // 0 before the first read
	lost     bool  // whether the call has broken after the first read
	stream   grpc.BidiStreamingClient[protocol.ReadRequest, protocol.ReadResponse]
	cancel   context.CancelFunc
	fetched  map[string]store.KV   // the keys that Prefetch has read; the Revision of an absent key is 0
	listed   map[string][]store.KV // the lists that Prefetch has read, by prefix
}

func (d *db) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if err := d.CheckUsable(ctx); err != nil {
		return nil, err
	}
	return &snapshot{d: d}, nil
}

func (s *snapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kv, ok := s.fetched[key]; ok {
		return kv, kv.Revision != 0, s.checkUsable(ctx)
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

// maxPrefetched is how many keys are read with one request.
const maxPrefetched = 256

// Prefetch reads the keys with one request, or with a few. The snapshot's first request also reads one list. Prefetch
// ignores keys and lists that the process must not read, for which Get and List return an error.
func (s *snapshot) Prefetch(ctx context.Context, next store.Scope) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	keys := next.Keys
	if s.revision == 0 && len(next.Prefixes) > 0 {
		n := min(len(keys), maxPrefetched)
		err := s.prefetchWithList(ctx, keys[:n], next.Prefixes[0])
		if !errors.Is(err, store.ErrDenied) {
			keys = keys[n:]
		}
		if err != nil && !errors.Is(err, store.ErrDenied) {
			return err
		}
	}

	for some := range slices.Chunk(keys, maxPrefetched) {
		read, err := s.read(ctx, &protocol.ReadRequest{Keys: protocol.FromKeys(some)})
		if err != nil {
			return err
		}
		s.keepFetched(some, read)
	}

	return nil
}

// prefetchWithList reads keys and a list with the snapshot's first request. If the process must not read the list, it
// returns an ErrDenied, and the snapshot has not begun.
func (s *snapshot) prefetchWithList(ctx context.Context, keys []string, prefix string) error {
	read, err := s.read(ctx, &protocol.ReadRequest{Keys: protocol.FromKeys(keys), List: true, Prefix: []byte(prefix)})
	if err != nil {
		return err
	}

	// The answer has the keys that exist, and after them the list.
	listed := slices.DeleteFunc(slices.Clone(read.found), func(kv store.KV) bool { return !strings.HasPrefix(kv.Key, prefix) })
	slices.SortFunc(listed, func(a, b store.KV) int { return strings.Compare(a.Key, b.Key) })
	listed = slices.CompactFunc(listed, func(a, b store.KV) bool { return a.Key == b.Key })
	s.listed = map[string][]store.KV{prefix: listed}

	s.keepFetched(keys, read)
	return nil
}

// keepFetched keeps the values of the keys for Get.
func (s *snapshot) keepFetched(keys []string, read answer) {
	if s.fetched == nil {
		s.fetched = map[string]store.KV{}
	}
	for _, key := range keys {
		if !slices.Contains(read.denied, key) {
			s.fetched[key] = store.KV{Key: key}
		}
	}
	for _, kv := range read.found {
		s.fetched[kv.Key] = kv
	}
}

func (s *snapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kvs, ok := s.listed[prefix]; ok {
		return slices.Clone(kvs), s.checkUsable(ctx)
	}

	read, err := s.read(ctx, &protocol.ReadRequest{List: true, Prefix: []byte(prefix)})
	return read.found, err
}

func (s *snapshot) Revision(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revision != 0 {
		return s.revision, s.checkUsable(ctx)
	}

	_, err := s.read(ctx, &protocol.ReadRequest{})
	return s.revision, err
}

func (s *snapshot) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.endStream()
}

func (s *snapshot) endStream() {
	if s.cancel != nil {
		s.cancel()
	}
	s.stream = nil
	s.cancel = nil
}

func (s *snapshot) checkUsable(ctx context.Context) error {
	if s.closed {
		return store.ErrClosed
	}
	return s.d.CheckUsable(ctx)
}

// answer holds all responses to one request.
type answer struct {
	found  []store.KV
	denied []string
}

// read sends a request to the gateway. It repeats the first request, which fixes the snapshot's revision,
// until the gateway answers. If a later request fails, the snapshot is lost, since a restarted gateway does
// not have the revision.
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

	s.lost = true
	if isTransient(err) && bound.Err() == nil {
		return answer{}, store.ErrHistoryLost
	}
	return answer{}, s.d.storeError(ctx, err)
}

// ask sends a request and receives its answer, until ctx ends. After an error it ends the stream.
func (s *snapshot) ask(ctx context.Context, request *protocol.ReadRequest) (a answer, err error) {
	defer func() {
		if err != nil {
			s.endStream()
		}
	}()

	// ctx belongs to one read, but all reads of the snapshot use the stream.
	before := s.d.seen.Load()
	if s.cancel == nil {
		var life context.Context
		life, s.cancel = context.WithCancel(s.d.Context())
		stop := context.AfterFunc(ctx, s.cancel)
		s.stream, err = s.d.client.Read(life)
		if err = notAfter(ctx, stop, err); err != nil {
			return a, err
		}
	}

	stop := context.AfterFunc(ctx, s.cancel)
	a, err = s.exchange(before, request)
	return a, notAfter(ctx, stop, err)
}

// notAfter stops the function that would end the stream with ctx, and returns err. If that function has
// already ended the stream, it returns an error even if err is nil.
func notAfter(ctx context.Context, stop func() bool, err error) error {
	if !stop() && err == nil {
		return context.Cause(ctx)
	}
	return err
}

// exchange sends a request on the snapshot's stream, and collects the parts of its answer.
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

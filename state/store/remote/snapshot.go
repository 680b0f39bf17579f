package remote

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"bijou/state/store"
	"bijou/state/store/remote/protocol"
)

// snapshot is one call of Read, begun by its first read. It ends with the connection.
type snapshot struct {
	d *db

	mu       sync.Mutex // one read at a time
	closed   bool
	revision int64 // 0: not fixed yet
	lost     bool  // the call has ended since
	stream   grpc.BidiStreamingClient[protocol.ReadRequest, protocol.ReadResponse]
	cancel   context.CancelFunc
	fetched  map[string]store.KV // by Prefetch; Revision 0: the key is absent
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

// maxPrefetched keys are read by one request.
const maxPrefetched = 256

// Prefetch reads the keys by one request, or by a few. Of one that may not be read Get will tell.
func (s *snapshot) Prefetch(ctx context.Context, keys ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	for some := range slices.Chunk(keys, maxPrefetched) {
		read, err := s.read(ctx, &protocol.ReadRequest{Keys: protocol.FromKeys(some)})
		if err != nil {
			return err
		}

		if s.fetched == nil {
			s.fetched = map[string]store.KV{}
		}
		for _, key := range some {
			if !slices.Contains(read.denied, key) {
				s.fetched[key] = store.KV{Key: key}
			}
		}
		for _, kv := range read.found {
			s.fetched[kv.Key] = kv
		}
	}

	return nil
}

func (s *snapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// answer is all responses to one request.
type answer struct {
	found  []store.KV
	denied []string
}

// read sends a request to the gateway. It repeats the request that fixes the snapshot's revision until the
// gateway answers. If a later one is not answered, the snapshot is lost, since a restarted gateway does not
// have the revision.
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

// ask sends a request and receives its answer, within ctx. After an error the call is over.
func (s *snapshot) ask(ctx context.Context, request *protocol.ReadRequest) (a answer, err error) {
	defer func() {
		if err != nil {
			s.endStream()
		}
	}()

	// The call outlives ctx, which is that of one read.
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

// notAfter returns err, and for a success that came when ctx had ended the call already, why.
func notAfter(ctx context.Context, stop func() bool, err error) error {
	if !stop() && err == nil {
		return context.Cause(ctx)
	}
	return err
}

// exchange sends a request on the snapshot's stream, and collects the parts of its answer.
func (s *snapshot) exchange(before int64, request *protocol.ReadRequest) (a answer, err error) {
	if err := s.stream.Send(request); err != nil {
		_, err = s.stream.Recv() // which has the reason
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

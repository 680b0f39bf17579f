package etcd

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// commitEvents is what one commit did to etcd's keys that are watched.
type commitEvents struct {
	revision int64
	events   map[string]*mvccpb.Event // by key
}

// streamListener hears what comes over a tape, on the tape's goroutine.
type streamListener interface {
	// watchCreated: the watch tells all that happened after the revision.
	watchCreated(id, revision int64)
	// commitComplete: one commit, whole, later than those before.
	commitComplete(c commitEvents)
	// progressReached: everything up to the revision was told to the watches there are.
	progressReached(revision int64)
	// watchCompacted: what the watch was to tell of is there only since the revision
	// kept. The watch has ended, but stands in the way until it is cancelled.
	watchCompacted(id, kept int64)
}

// watchStream is one stream of many of etcd's watches. Etcd sends what a commit did to
// each watch apart, and in no order of watches; only when it says how far it is
// with all of them is a commit known to be whole. So after each event the tape
// asks; what comes meanwhile waits.
//
// It speaks to the stream itself, not through clientv3's watcher, which has a
// goroutine for each watch and repeats each word about progress to all of them.
type watchStream struct {
	d        *db
	listener streamListener

	mu            sync.Mutex
	sendQueue     []*pb.WatchRequest     // to be sent
	creating      map[int64]int64        // of watches that are not created yet
	progressRetry time.Duration          // how far it is, without an answer yet: when to ask again; else 0
	lastReceived  time.Time              // when anything came last
	wake          chan struct{}          // one is enough: it says "look"
	pending       map[int64]commitEvents // by revision; of the reader only
}

const (
	minProgressRetry = 10 * time.Millisecond // doubled each time: etcd does not answer while a watch catches up
	maxProgressRetry = 40 * time.Millisecond
	progressInterval = 3 * time.Second
	silenceTimeout   = 3 * progressInterval // without a word for so long the stream is given up
)

func newWatchStream(d *db, l streamListener) *watchStream {
	return &watchStream{d: d, listener: l, creating: map[int64]int64{}, wake: make(chan struct{}, 1), pending: map[int64]commitEvents{}}
}

// addWatch adds a watch of a span, from the revision on; 0 is from now on.
func (t *watchStream) addWatch(id int64, s keyRange, start int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.creating[id] = start
	t.enqueue(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte(s.begin), RangeEnd: []byte(s.end), StartRevision: start, WatchId: id, Fragment: true,
	}}})
}

// cancelWatch ends a watch; something of it may still come.
func (t *watchStream) cancelWatch(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.enqueue(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}})
}

// requestProgress asks how far etcd is with all watches.
func (t *watchStream) requestProgress() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.progressRetry == 0 {
		t.progressRetry = minProgressRetry
		t.enqueue(newProgressRequest())
	}
}

func newProgressRequest() *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
}

// enqueue queues a request. The caller holds the lock.
func (t *watchStream) enqueue(r *pb.WatchRequest) {
	t.sendQueue = append(t.sendQueue, r)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// run plays until the stream breaks or the context ends. A tape is played once.
func (t *watchStream) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	var sender sync.WaitGroup
	defer sender.Wait()
	defer cancel()
	stream, err := pb.NewWatchClient(t.d.client.ActiveConnection()).
		Watch(ctx, grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	t.touchReceived()
	sender.Go(func() {
		defer cancel()
		t.sendLoop(ctx, stream)
	})
	for {
		resp, err := stream.Recv()
		if err == nil {
			t.touchReceived()
			err = t.dispatchResponse(resp)
		}
		if err != nil {
			return err
		}
	}
}

func (t *watchStream) touchReceived() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastReceived = time.Now()
}

// sendLoop sends what is queued, and asks on its own account: again, where there
// was no answer, and when nothing was heard for long.
func (t *watchStream) sendLoop(ctx context.Context, stream pb.Watch_WatchClient) {
	for {
		out, wait, err := t.nextRequests()
		if err != nil {
			return
		}
		for _, r := range out {
			if stream.Send(r) != nil {
				return
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-t.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

var errSilent = errors.New("etcd has fallen silent")

// nextRequests is what to send now, and when to look again.
func (t *watchStream) nextRequests() (out []*pb.WatchRequest, wait time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	quiet := time.Since(t.lastReceived)
	if quiet > silenceTimeout {
		return nil, 0, errSilent
	}
	out, t.sendQueue = t.sendQueue, nil
	if len(out) == 0 && (t.progressRetry > 0 || quiet > progressInterval) {
		t.progressRetry = min(max(2*t.progressRetry, minProgressRetry), maxProgressRetry)
		out = append(out, newProgressRequest())
	}
	if t.progressRetry > 0 {
		return out, t.progressRetry, nil
	}
	return out, progressInterval, nil
}

// dispatchResponse plays one message.
func (t *watchStream) dispatchResponse(resp *pb.WatchResponse) error {
	switch {
	case resp.Created && resp.Canceled && resp.CancelReason == rpctypes.ErrGRPCPermissionDenied.Error():
		return rpctypes.ErrPermissionDenied
	case resp.Created && resp.Canceled:
		return errors.New(resp.CancelReason)
	case resp.Created:
		t.confirmCreated(resp)
	case resp.CompactRevision != 0:
		t.listener.watchCompacted(resp.WatchId, resp.CompactRevision)
	case resp.Canceled && resp.CancelReason != "":
		return errors.New(resp.CancelReason)
	case resp.WatchId == clientv3.InvalidWatchID:
		t.releaseCommits(resp.Header.Revision)
	case len(resp.Events) > 0:
		for _, e := range resp.Events {
			t.collectEvent(e)
		}
		t.requestProgress()
	}
	return nil
}

func (t *watchStream) confirmCreated(resp *pb.WatchResponse) {
	t.mu.Lock()
	from := t.creating[resp.WatchId] - 1
	if from < 0 {
		from = resp.Header.Revision
	}
	delete(t.creating, resp.WatchId)
	if len(t.creating) == 0 && t.progressRetry > 0 {
		t.enqueue(newProgressRequest()) // the answer that came meanwhile was of no use
	}
	t.mu.Unlock()
	t.listener.watchCreated(resp.WatchId, from)
}

func (t *watchStream) collectEvent(e *mvccpb.Event) {
	c, ok := t.pending[e.Kv.ModRevision]
	if !ok {
		c = commitEvents{e.Kv.ModRevision, map[string]*mvccpb.Event{}}
		t.pending[c.revision] = c
	}
	c.events[string(e.Kv.Key)] = e
}

// releaseCommits says that all was sent up to the revision, but for watches that are
// being created: what they have told may come after.
func (t *watchStream) releaseCommits(revision int64) {
	t.mu.Lock()
	early := len(t.creating) > 0
	if !early {
		t.progressRetry = 0
	}
	t.mu.Unlock()
	if early {
		return
	}
	for _, r := range slices.Sorted(maps.Keys(t.pending)) {
		if r > revision {
			t.requestProgress()
			break
		}
		t.listener.commitComplete(t.pending[r])
		delete(t.pending, r)
	}
	t.listener.progressReached(revision)
}

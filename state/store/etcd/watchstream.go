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

// commitEvents are the events of one commit on the watched keys of etcd.
type commitEvents struct {
	revision int64
	events   map[string]*mvccpb.Event // by key
}

// streamListener receives the results of a watchStream. The stream calls its methods from one goroutine.
type streamListener interface {
	// watchCreated is called when etcd has created a watch. The watch delivers all commits after the revision.
	watchCreated(id, revision int64)
	// commitComplete is called with all events of one commit. Commits come in order.
	commitComplete(c commitEvents)
	// progressReached is called when all commits up to the revision were delivered for all current watches.
	progressReached(revision int64)
	// watchCompacted is called when a watch has ended because etcd no longer has the history before the
	// revision kept. The id cannot be used for another watch until the watch is cancelled.
	watchCompacted(id, kept int64)
}

// watchStream is one gRPC stream with many of etcd's watches. etcd sends the events of a commit separately
// for each watch, and the watches in any order. Only a progress report for all watches shows that a commit is
// complete. So the stream requests progress after each event, and collects events until the report.
//
// It does not use the watcher of clientv3, which has a goroutine for each watch, and sends each progress
// report to all of them.
type watchStream struct {
	d        *db
	listener streamListener

	mu            sync.Mutex
	sendQueue     []*pb.WatchRequest
	creating      map[int64]int64 // the start revisions of watches that are not created yet, by id
	progressRetry time.Duration   // the time before a request for progress is repeated; 0 if all requests were answered
	lastReceived  time.Time
	wake          chan struct{}          // buffered: one wake-up is enough
	pending       map[int64]commitEvents // by revision; only the receiving goroutine uses it
}

const (
	// minProgressRetry is the time before the request for progress is repeated. etcd does not answer the request
	// while a watch catches up. The time doubles up to maxProgressRetry.
	minProgressRetry = 10 * time.Millisecond
	maxProgressRetry = 40 * time.Millisecond
	// progressInterval is how often progress is requested while nothing is received.
	progressInterval = 3 * time.Second
	// silenceTimeout is the time after which a stream that receives nothing ends.
	silenceTimeout = 3 * progressInterval
)

// newWatchStream returns a stream that passes its results to l. It is opened by run.
func newWatchStream(d *db, l streamListener) *watchStream {
	return &watchStream{
		d:        d,
		listener: l,
		creating: map[int64]int64{},
		wake:     make(chan struct{}, 1),
		pending:  map[int64]commitEvents{},
	}
}

// addWatch requests a watch of the keys from revision start on. If start is 0, the watch delivers only changes
// after the current revision.
func (s *watchStream) addWatch(id int64, keys keyRange, start int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creating[id] = start
	s.enqueue(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key:           []byte(keys.begin),
		RangeEnd:      []byte(keys.end),
		StartRevision: start,
		WatchId:       id,
		Fragment:      true, // etcd splits large responses
	}}})
}

// cancelWatch ends a watch. Some of its events may still arrive.
func (s *watchStream) cancelWatch(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	request := &pb.WatchCancelRequest{WatchId: id}
	s.enqueue(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: request}})
}

// requestProgress requests a progress report, unless an earlier request is unanswered.
func (s *watchStream) requestProgress() {
	s.mu.Lock()
	defer s.mu.Unlock()
	allAnswered := s.progressRetry == 0
	if allAnswered {
		s.progressRetry = minProgressRetry
		s.enqueue(newProgressRequest())
	}
}

// newProgressRequest returns a request for a report up to which revision etcd has sent all events.
func newProgressRequest() *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
}

// enqueue queues a request for sendLoop, and wakes it. The caller holds s.mu.
func (s *watchStream) enqueue(r *pb.WatchRequest) {
	s.sendQueue = append(s.sendQueue, r)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run opens the stream, and passes its responses to the listener. It blocks until the stream breaks, is
// silent for silenceTimeout, or ctx ends. It must be called only once.
func (s *watchStream) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	var sender sync.WaitGroup
	// Deferred calls run last first: cancel ends the sender, and Wait waits for it.
	defer sender.Wait()
	defer cancel()

	stream, err := pb.NewWatchClient(s.d.client.ActiveConnection()).
		Watch(ctx, grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.WaitForReady(true))
	if err != nil {
		return err
	}

	s.touchReceived()
	sender.Go(func() {
		defer cancel() // ends stream.Recv
		s.sendLoop(ctx, stream)
	})

	for {
		resp, err := stream.Recv()
		if err != nil {
			return err
		}

		s.touchReceived()
		if err := s.dispatchResponse(resp); err != nil {
			return err
		}
	}
}

// touchReceived records that something was received just now.
func (s *watchStream) touchReceived() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastReceived = time.Now()
}

// sendLoop sends the queued requests. It also repeats a request for progress that was not answered, and requests
// progress if nothing was received for progressInterval. It returns if nothing was received for silenceTimeout, if
// it cannot send, or if ctx is done.
func (s *watchStream) sendLoop(ctx context.Context, stream pb.Watch_WatchClient) {
	for {
		requests, wait, ok := s.nextRequests()
		if !ok {
			return
		}

		for _, r := range requests {
			if stream.Send(r) != nil {
				return
			}
		}

		select {
		case <-s.wake:
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// nextRequests returns the requests to send now, and the time until the next call. If no request is queued, it
// returns a request for progress if an earlier one is unanswered, or if nothing was received for progressInterval.
// It returns ok false if nothing was received for silenceTimeout.
func (s *watchStream) nextRequests() (requests []*pb.WatchRequest, wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	silence := time.Since(s.lastReceived)
	if silence > silenceTimeout {
		return nil, 0, false
	}

	requests = s.sendQueue
	s.sendQueue = nil
	isUnanswered := s.progressRetry > 0
	progressIsDue := isUnanswered || silence > progressInterval
	if len(requests) == 0 && progressIsDue {
		s.progressRetry = min(max(2*s.progressRetry, minProgressRetry), maxProgressRetry)
		requests = append(requests, newProgressRequest())
	}

	if s.progressRetry > 0 {
		return requests, s.progressRetry, true
	}
	return requests, progressInterval, true
}

// dispatchResponse handles one response of etcd's watch stream. It returns an error if the stream must end.
func (s *watchStream) dispatchResponse(resp *pb.WatchResponse) error {
	switch {
	case resp.Created && resp.Canceled && resp.CancelReason == rpctypes.ErrGRPCPermissionDenied.Error():
		return rpctypes.ErrPermissionDenied
	case resp.Created && resp.Canceled:
		return errors.New(resp.CancelReason)
	case resp.Created:
		s.confirmCreated(resp)
	case resp.CompactRevision != 0:
		s.listener.watchCompacted(resp.WatchId, resp.CompactRevision)
	case resp.Canceled && resp.CancelReason != "":
		// Only watches that etcd itself has ended have a reason.
		return errors.New(resp.CancelReason)
	case resp.WatchId == clientv3.InvalidWatchID:
		// This is a progress report for all watches.
		s.releaseCommits(resp.Header.Revision)
	case len(resp.Events) > 0:
		for _, e := range resp.Events {
			s.collectEvent(e)
		}
		// Only a report of the progress shows that the events of a commit are complete.
		s.requestProgress()
	}

	return nil
}

// confirmCreated reports to the listener that etcd has created a watch, and after which revision the watch
// delivers changes.
func (s *watchStream) confirmCreated(resp *pb.WatchResponse) {
	s.mu.Lock()
	start := s.creating[resp.WatchId]
	after := start - 1
	if start == 0 {
		// The watch began at the current revision.
		after = resp.Header.Revision
	}

	delete(s.creating, resp.WatchId)
	if len(s.creating) == 0 && s.progressRetry > 0 {
		// releaseCommits has ignored the progress reports until now.
		s.enqueue(newProgressRequest())
	}
	s.mu.Unlock()
	s.listener.watchCreated(resp.WatchId, after)
}

// collectEvent adds an event to the pending events of its commit. Several watches can send the same event, which
// it keeps once.
func (s *watchStream) collectEvent(e *mvccpb.Event) {
	c, ok := s.pending[e.Kv.ModRevision]
	if !ok {
		c = commitEvents{e.Kv.ModRevision, map[string]*mvccpb.Event{}}
		s.pending[c.revision] = c
	}
	c.events[string(e.Kv.Key)] = e
}

// releaseCommits handles a progress report: etcd has sent all events up to the revision. It passes the
// commits up to the revision to the listener, and then reports the progress. It does nothing while a watch is
// being created, since events from that watch may come later.
func (s *watchStream) releaseCommits(revision int64) {
	s.mu.Lock()
	isCreating := len(s.creating) > 0
	if !isCreating {
		s.progressRetry = 0
	}
	s.mu.Unlock()
	if isCreating {
		return
	}

	for _, r := range slices.Sorted(maps.Keys(s.pending)) {
		if r > revision {
			// Only a later report shows that this commit is complete.
			s.requestProgress()
			break
		}
		s.listener.commitComplete(s.pending[r])
		delete(s.pending, r)
	}
	s.listener.progressReached(revision)
}

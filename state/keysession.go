package state

import (
	"context"

	"bijou/state/store"
)

// KeySession is the proof that a process lives, over a Keyspace: its leased keys, and
// those of its leaderships, vanish within SessionTTL of its end.
type KeySession struct {
	keys    *Keyspace
	session *Session
}

// NewSession begins a session, which lives until it is closed, is lost, or the
// process ends. ctx bounds the beginning only.
func (k *Keyspace) NewSession(ctx context.Context) (*KeySession, error) {
	return k.wrapSession(k.beginSession(ctx))
}

func (k *Keyspace) beginSession(ctx context.Context) (*Session, error) {
	s, err := k.state.NewSession(ctx)
	if err == nil {
		s.leaderPrefix = k.root
	}
	return s, err
}

func (k *Keyspace) wrapSession(s *Session, err error) (*KeySession, error) {
	if err != nil {
		return nil, err
	}
	return &KeySession{keys: k, session: s}, nil
}

// SharedKeySession is a Process over a Keyspace, one of whose roles announces itself.
type SharedKeySession struct {
	keys    *Keyspace
	process *SharedSession
}

// NewSharedSession begins no session yet.
func (k *Keyspace) NewSharedSession() *SharedKeySession {
	return &SharedKeySession{k, newSharedSession(k.beginSession, true)}
}

// Session is Process.Session.
func (p *SharedKeySession) Session(ctx context.Context) (*KeySession, error) {
	return p.keys.wrapSession(p.process.Session(ctx))
}

// AnnouncedSession is SharedSession.AnnouncedSession.
func (p *SharedKeySession) AnnouncedSession(ctx context.Context) (*KeySession, error) {
	return p.keys.wrapSession(p.process.AnnouncedSession(ctx))
}

// MarkAnnounced is SharedSession.MarkAnnounced.
func (p *SharedKeySession) MarkAnnounced(s *KeySession) { p.process.MarkAnnounced(s.session) }

// IsAnnounced is SharedSession.IsAnnounced.
func (p *SharedKeySession) IsAnnounced(s *KeySession) bool { return p.process.IsAnnounced(s.session) }

// Close is Process.Close.
func (p *SharedKeySession) Close(ctx context.Context) error { return p.process.Close(ctx) }

// Done is closed once the session is lost or closed.
func (s *KeySession) Done() <-chan struct{} { return s.session.Done() }

// Close ends the session: its keys vanish at once. It is idempotent.
func (s *KeySession) Close(ctx context.Context) error { return s.session.Close(ctx) }

// Campaign blocks until this session leads at the key, which then names it, and vanishes
// with the session or when it resigns. ErrSessionLost: the session ended meanwhile.
func (s *KeySession) Campaign(ctx context.Context, key string) (*KeyLeadership, error) {
	l, err := s.session.Campaign(ctx, key)
	if err != nil {
		return nil, err
	}
	return &KeyLeadership{keys: s.keys, leadership: l}, nil
}

// KeyLeadership is the right of one session to do something alone.
type KeyLeadership struct {
	keys       *Keyspace
	leadership *Leadership
	revision   int64 // the revision at which it was written that it leads; 0: not read yet
}

// Done is closed once the leadership has ended.
func (l *KeyLeadership) Done() <-chan struct{} { return l.leadership.Done() }

// Update is Keyspace.Update, conditional on this leadership: ErrSessionLost.
func (l *KeyLeadership) Update(ctx context.Context, f func(tx *KeyTx) error) error {
	return l.leadership.Update(ctx, l.keys.adaptTx(f))
}

// PutIf is Keyspace.PutIf, conditional on this leadership, too. It returns at which
// revision the key was written; 0 if it was not, for whichever reason: Update tells if
// that is the leadership's end.
func (l *KeyLeadership) PutIf(ctx context.Context, guard string, revision int64, key string, doc any) (written int64, err error) {
	at := l.keys.root + l.leadership.name
	if l.revision == 0 {
		if l.revision, err = l.keys.leaderRevision(ctx, at, l.leadership.session.id); err != nil || l.revision == 0 {
			return 0, err
		}
	}
	return l.keys.putIf(ctx, []store.Cond{{Key: at, Revision: l.revision}, {Key: l.keys.root + guard, Revision: revision}}, key, doc)
}

// leaderRevision returns at which revision the session wrote the leader's key, which it
// does once; 0 if another one leads.
func (k *Keyspace) leaderRevision(ctx context.Context, at, session string) (revision int64, err error) {
	err = k.state.View(ctx, func(v *View) error {
		kv, ok, err := v.snap.Get(v.ctx, at)
		if revision = 0; err != nil || !ok {
			return err
		}
		var p presence
		if err := (KeyValue{Key: at, Value: kv.Value}).Decode(&p); err != nil {
			return err
		}
		if p.Session == session {
			revision = kv.Revision
		}
		return nil
	})
	return revision, err
}

// Resign ends the leadership, for the next to take. It is called once.
func (l *KeyLeadership) Resign(ctx context.Context) error { return l.leadership.Resign(ctx) }

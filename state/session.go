package state

import "bijou/state/keyspace"

// SessionTTL is how long a process may be silent before its agents count as gone, and
// its leaderships as free.
const SessionTTL = keyspace.SessionTTL

type (
	// Session is the proof that a process lives: the presence of all its agents and its
	// leaderships need it. One a process is enough. It shows others that agents live; what
	// these may write is a matter of their Claim.
	Session = keyspace.Session
	// SharedSession shares one session among all roles of a process.
	SharedSession = keyspace.SharedSession
	// Leadership is the right of one session in the environment to do something
	// alone, as long as the session lives.
	Leadership = keyspace.Leadership
)

// NewSharedSession begins no session yet. With announces, one of the roles announces agents,
// and campaigns wait for that.
func NewSharedSession(s *State, announces bool) *SharedSession {
	return keyspace.NewSharedSession(s.space, announces)
}

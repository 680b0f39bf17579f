package state

import "bijou/state/keyspace"

// SessionTTL is how long a process can be silent before its agents count as gone and it loses its
// leaderships.
const SessionTTL = keyspace.SessionTTL

type (
	// Session proves that a process is running. The presence of its agents and its leaderships depend on it.
	// A process needs only one session. A session does not give agents the right to write: a Claim does.
	Session = keyspace.Session
	// SharedSession shares one session among all roles of a process.
	SharedSession = keyspace.SharedSession
	// Leadership is the exclusive right of a session to do a task of the environment. It ends with the
	// session.
	Leadership = keyspace.Leadership
)

// NewSharedSession returns a SharedSession that starts its session when a role first needs it. If announces
// is set, campaigns wait until a role has announced the process's agents.
func NewSharedSession(s *State, announces bool) *SharedSession {
	return keyspace.NewSharedSession(s.space, announces)
}

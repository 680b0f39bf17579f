package hookapitest

import "bijou/hookenv/hookapi"

func leadershipTests() []test {
	return []test{
		{"one unit leads, and a hook hears of it once", leadsOnce},
		{"leader settings are their leader's to write, and everybody's to read", leaderSettings},
		{"a hook that wrote as a leader and was deposed fails whole", deposed},
		{"a hook that only read as a leader succeeds all the same", deposedReader},
		{"another service's settings in a relation are nobody's here", othersNode},
		{"a unit's notes are seen by its hook at once and kept at its success", notes},
		{"the notes of a failed hook are dropped", notesDropped},
	}
}

func (s suite) leads(h hookapi.Hook, want bool) {
	s.Helper()
	got, err := h.IsLeader(s.ctx())
	s.fails("IsLeader", nil, err)
	s.same("IsLeader", want, got)
}

func leadsOnce(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	s.leads(r, false)
	s.env.Lead("wordpress", "wordpress/0")
	s.leads(r, false)
	stranger := s.env.Start(plain("mysql/0", "mysql"))
	defer stranger.Abort()
	s.leads(stranger, false)
	r.Abort()
	next := s.env.Start(dbChanged())
	defer next.Abort()
	s.leads(next, true)
	s.env.Lead("wordpress", "wordpress/1")
	s.leads(next, true)
}

// told compares the leader settings that a hook sees with want.
func (s suite) told(h hookapi.Hook, want map[string]string) {
	s.Helper()
	got, err := h.LeaderSettings(s.ctx())
	s.fails("LeaderSettings", nil, err)
	s.same("LeaderSettings", want, got)
}

func leaderSettings(s suite) {
	s.env.Lead("wordpress", "wordpress/0")
	r, peer := s.env.Start(dbChanged()), s.env.Start(plain("wordpress/1", "wordpress"))
	s.told(peer, map[string]string{})
	s.fails("SetLeaderSettings", nil, r.SetLeaderSettings(s.ctx(), to("a", "1", "b", "2", "c", "")))
	s.fails("SetLeaderSettings", nil, r.SetLeaderSettings(s.ctx(), to("b", "")))
	s.told(r, map[string]string{"a": "1"})
	s.commit(r)
	s.told(peer, map[string]string{})
	s.fails("SetLeaderSettings of a peer", hookapi.ErrNotLeader, peer.SetLeaderSettings(s.ctx(), to("a", "2")))
	s.fails("without a change", hookapi.ErrNotLeader, peer.SetLeaderSettings(s.ctx(), nil))
	peer.Abort()
	next := s.env.Start(plain("wordpress/1", "wordpress"))
	defer next.Abort()
	s.told(next, map[string]string{"a": "1"})
	stranger := s.env.Start(plain("mysql/0", "mysql"))
	defer stranger.Abort()
	s.told(stranger, map[string]string{})
}

func deposed(s suite) {
	s.env.Lead("wordpress", "wordpress/0")
	r := s.env.Start(dbChanged())
	s.fails("SetLeaderSettings", nil, r.SetLeaderSettings(s.ctx(), to("a", "1")))
	s.set(r, own, to("b", "2"))
	s.env.Lead("wordpress", "wordpress/1")
	if err := r.Commit(s.ctx()); err == nil {
		s.Error("a deposed leader's hook was committed")
	}
	s.same("committed", map[string]string{"private-address": "10.0.3.7"}, s.committed("wordpress/0"))
	next := s.env.Start(plain("wordpress/1", "wordpress"))
	defer next.Abort()
	s.told(next, map[string]string{})
}

func deposedReader(s suite) {
	s.env.Lead("wordpress", "wordpress/0")
	r := s.env.Start(dbChanged())
	s.leads(r, true)
	s.set(r, own, to("b", "2"))
	s.env.Lead("wordpress", "")
	s.commit(r)
	s.same("committed", map[string]string{"private-address": "10.0.3.7", "b": "2"}, s.committed("wordpress/0"))
}

func othersNode(s suite) {
	s.env.Lead("wordpress", "wordpress/0")
	r := s.env.Start(dbChanged())
	defer r.Abort()
	theirs := hookapi.Node{Relation: 0, Service: "mysql"}
	s.fails("SetSettings", hookapi.ErrNotLeader, r.SetSettings(s.ctx(), theirs, to("a", "1")))
}

// noted compares the unit's own state that a hook sees with want.
func (s suite) noted(h hookapi.Hook, want map[string]string) {
	s.Helper()
	got, err := h.State(s.ctx())
	s.fails("State", nil, err)
	s.same("State", want, got)
}

func notes(s suite) {
	r := s.env.Start(dbChanged())
	s.noted(r, map[string]string{})
	s.fails("SetState", nil, r.SetState(s.ctx(), to("a", "1", "b", "2")))
	s.noted(r, map[string]string{"a": "1", "b": "2"})
	s.commit(r)
	peer := s.env.Start(plain("wordpress/1", "wordpress"))
	defer peer.Abort()
	s.noted(peer, map[string]string{})
	next := s.env.Start(dbChanged())
	s.fails("SetState", nil, next.SetState(s.ctx(), to("a", "")))
	s.commit(next)
	last := s.env.Start(dbChanged())
	defer last.Abort()
	s.noted(last, map[string]string{"b": "2"})
}

func notesDropped(s suite) {
	r := s.env.Start(dbChanged())
	s.fails("SetState", nil, r.SetState(s.ctx(), to("a", "1")))
	r.Abort()
	next := s.env.Start(dbChanged())
	defer next.Abort()
	s.noted(next, map[string]string{})
}

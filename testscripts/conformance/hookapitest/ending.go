package hookapitest

import (
	"sync"

	"bijou/hookenv/hookapi"
)

func endingTests() []test {
	return []test{
		{"writes to several relations commit together", commitTogether},
		{"an aborted hook writes nothing", abortWrites},
		{"writes merge key by key; the later commit wins a key", mergeByKey},
		{"a value equal to what was read writes nothing", equalWritesNothing},
		{"a value set and set back writes nothing", setBackWritesNothing},
		{"an unchanged key does not undo a change by others", unchangedKeyKept},
		{"a relation that vanished is ignored at the end", vanishedIgnored},
		{"a departed member's settings take writes until the end", departedWritten},
		{"after the end everything is gone", goneAfterEnd},
		{"calls beside the end are whole or gone", callsBesideEnd},
	}
}

func commitTogether(s suite) {
	r := s.env.Start(dbChanged())
	website := hookapi.Node{Relation: 1, Unit: "wordpress/0"}
	s.set(r, own, to("a", "1"))
	s.set(r, website, to("b", "2"))
	s.commit(r)
	stranger := s.env.Start(plain("wordpress/1", "wordpress"))
	defer stranger.Abort()
	s.same("relation 0", map[string]string{"private-address": "10.0.3.7", "a": "1"}, s.settings(stranger, "wordpress/0"))
	s.same("relation 1", map[string]string{"private-address": "10.0.3.7", "b": "2"}, s.node(stranger, website))
}

func abortWrites(s suite) {
	version := s.env.Version(own)
	r := s.env.Start(dbChanged())
	s.set(r, own, to("a", "1"))
	r.Abort()
	s.same("committed", map[string]string{"private-address": "10.0.3.7"}, s.committed("wordpress/0"))
	s.same("version", version, s.env.Version(own))
}

func mergeByKey(s suite) {
	r := s.env.Start(dbChanged())
	s.set(r, own, to("mine", "1", "both", "hook", "private-address", ""))
	s.env.Change(own, to("theirs", "2", "both", "other"))
	s.commit(r)
	want := map[string]string{"mine": "1", "theirs": "2", "both": "hook"}
	s.same("committed", want, s.committed("wordpress/0"))
}

func equalWritesNothing(s suite) {
	version := s.env.Version(own)
	r := s.env.Start(dbChanged())
	s.set(r, own, to("private-address", "10.0.3.7", "never-was", ""))
	s.commit(r)
	s.same("version", version, s.env.Version(own))
}

func setBackWritesNothing(s suite) {
	version := s.env.Version(own)
	r := s.env.Start(dbChanged())
	s.set(r, own, to("private-address", "elsewhere", "a", "1"))
	s.set(r, own, to("private-address", "10.0.3.7", "a", ""))
	s.commit(r)
	s.same("version", version, s.env.Version(own))
}

func unchangedKeyKept(s suite) {
	r := s.env.Start(dbChanged())
	s.set(r, own, to("private-address", "10.0.3.7", "a", "1"))
	s.env.Change(own, to("private-address", "moved"))
	s.commit(r)
	s.same("committed", map[string]string{"private-address": "moved", "a": "1"}, s.committed("wordpress/0"))
}

func vanishedIgnored(s suite) {
	r := s.env.Start(dbChanged())
	s.set(r, own, to("a", "1"))
	s.set(r, hookapi.Node{Relation: 1, Unit: "wordpress/0"}, to("b", "2"))
	s.env.RemoveRelation(1)
	s.commit(r)
	s.same("relation 0", map[string]string{"private-address": "10.0.3.7", "a": "1"}, s.committed("wordpress/0"))
	stranger := s.env.Start(plain("backup/0", "backup"))
	defer stranger.Abort()
	_, err := stranger.Relation(s.ctx(), 1)
	s.fails("Relation(1)", hookapi.ErrRelationNotFound, err)
}

func departedWritten(s suite) {
	r := s.env.Start(dbChanged())
	node := hookapi.Node{Relation: 0, Unit: "mysql/1"}
	s.set(r, node, to("by", "wordpress/0"))
	s.env.Leave(0, "mysql/1")
	s.commit(r)
	s.same("committed", map[string]string{"private-address": "10.0.3.9", "by": "wordpress/0"}, s.committed("mysql/1"))
}

func goneAfterEnd(s suite) {
	r := s.env.Start(dbChanged())
	s.settings(r, "mysql/0")
	s.commit(r)
	s.allGone(r)
	r = s.env.Start(dbChanged())
	r.Abort()
	s.allGone(r)
}

// allGone calls every method of an ended hook, and expects ErrGone.
func (s suite) allGone(h hookapi.Hook) {
	s.Helper()
	_, err := h.Relation(s.ctx(), 0)
	s.fails("Relation", hookapi.ErrGone, err)
	_, err = h.RelationIDs(s.ctx(), "wordpress/0")
	s.fails("RelationIDs", hookapi.ErrGone, err)
	_, err = h.Settings(s.ctx(), hookapi.Node{Relation: 0, Unit: "mysql/0"})
	s.fails("Settings", hookapi.ErrGone, err)
	s.fails("SetSettings", hookapi.ErrGone, h.SetSettings(s.ctx(), own, to("a", "1")))
	_, err = h.Config(s.ctx())
	s.fails("Config", hookapi.ErrGone, err)
	_, err = h.Address(s.ctx(), true)
	s.fails("Address", hookapi.ErrGone, err)
	s.fails("SetPort", hookapi.ErrGone, h.SetPort(s.ctx(), "", hookapi.Port{From: 80, To: 80, Protocol: "tcp"}, true))
	_, err = h.Ports(s.ctx())
	s.fails("Ports", hookapi.ErrGone, err)
	_, err = h.Status(s.ctx(), false)
	s.fails("Status", hookapi.ErrGone, err)
	s.fails("SetStatus", hookapi.ErrGone, h.SetStatus(s.ctx(), false, hookapi.Status{Status: "active"}))
	_, err = h.IsLeader(s.ctx())
	s.fails("IsLeader", hookapi.ErrGone, err)
	_, err = h.LeaderSettings(s.ctx())
	s.fails("LeaderSettings", hookapi.ErrGone, err)
	s.fails("SetLeaderSettings", hookapi.ErrGone, h.SetLeaderSettings(s.ctx(), to("a", "1")))
	_, err = h.State(s.ctx())
	s.fails("State", hookapi.ErrGone, err)
	s.fails("SetState", hookapi.ErrGone, h.SetState(s.ctx(), to("a", "1")))
	_, err = h.Network(s.ctx(), "db", hookapi.NoRelation)
	s.fails("Network", hookapi.ErrGone, err)
	_, err = h.Goals(s.ctx())
	s.fails("Goals", hookapi.ErrGone, err)
	_, err = h.Bindings(s.ctx())
	s.fails("Bindings", hookapi.ErrGone, err)
	s.fails("SetVersion", hookapi.ErrGone, h.SetVersion(s.ctx(), "1"))
	s.fails("Reboot", hookapi.ErrGone, h.Reboot(s.ctx(), true))
	_, err = h.Action(s.ctx())
	s.fails("Action", hookapi.ErrGone, err)
	_, err = h.Resource(s.ctx(), "image")
	s.fails("Resource", hookapi.ErrGone, err)
	// Log must not panic.
	h.Log("INFO", "from beyond")
}

func callsBesideEnd(s suite) {
	r := s.env.Start(dbChanged())
	errs := make([]error, 8)
	var wait sync.WaitGroup
	for i := range errs {
		wait.Go(func() { errs[i] = r.SetSettings(s.ctx(), own, to(string(rune('a'+i)), "1")) })
	}
	s.commit(r)
	wait.Wait()
	got := s.committed("wordpress/0")
	for i, err := range errs {
		if err != nil {
			s.fails("SetSettings beside the end", hookapi.ErrGone, err)
		}
		if kept := got[string(rune('a'+i))] == "1"; kept != (err == nil) {
			s.Errorf("write %d: kept %v, but its call said %v", i, kept, err)
		}
	}
}

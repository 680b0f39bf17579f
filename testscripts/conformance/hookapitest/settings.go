package hookapitest

import (
	"fmt"
	"strings"
	"sync"

	"bijou/hookenv/hookapi"
)

func settingsTests() []test {
	return []test{
		{"a node is fixed at its first read", fixedAtRead},
		{"a node is fixed at its first write", fixedAtWrite},
		{"a node not used yet is read as it is by then", laterNode},
		{"what Settings returns is a copy", settingsCopy},
		{"own writes are seen by later reads at once", ownWrites},
		{"a deleted key is gone at once", ownDelete},
		{"a service's own settings are a node of their own", serviceNode},
		{"a departed unit's settings stay readable", departedReadable},
		{"a unit that leaves meanwhile stays readable", leavesMeanwhile},
		{"a unit that never was is unknown", unknownUnit},
		{"a unit in another relation is unknown in this one", otherRelationsUnit},
		{"a member without settings has none", memberWithoutSettings},
		{"large values pass unchanged", largeValue},
		{"tools may run in parallel", parallel},
	}
}

func fixedAtRead(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	before := s.settings(r, "mysql/0")
	s.env.Change(hookapi.Node{Relation: 0, Unit: "mysql/0"}, to("user", "changed", "new", "key"))
	s.same("settings of mysql/0", before, s.settings(r, "mysql/0"))
}

func fixedAtWrite(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	s.set(r, own, to("a", "1"))
	s.env.Change(own, to("late", "yes"))
	s.same("own settings", map[string]string{"private-address": "10.0.3.7", "a": "1"}, s.settings(r, "wordpress/0"))
}

func laterNode(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	s.settings(r, "mysql/0")
	s.env.Change(hookapi.Node{Relation: 0, Unit: "mysql/1"}, to("ready", "yes"))
	s.same("settings of mysql/1", map[string]string{"private-address": "10.0.3.9", "ready": "yes"}, s.settings(r, "mysql/1"))
}

func settingsCopy(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	got := s.settings(r, "mysql/1")
	got["scribble"] = "yes"
	s.same("settings", map[string]string{"private-address": "10.0.3.9"}, s.settings(r, "mysql/1"))
}

func ownWrites(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	s.set(r, own, to("a", "1", "b", "2"))
	s.set(r, own, to("a", "3"))
	want := map[string]string{"private-address": "10.0.3.7", "a": "3", "b": "2"}
	s.same("own settings", want, s.settings(r, "wordpress/0"))
	stranger := s.env.Start(plain("mysql/0", "mysql"))
	defer stranger.Abort()
	s.same("seen by others", map[string]string{"private-address": "10.0.3.7"}, s.settings(stranger, "wordpress/0"))
}

func ownDelete(s suite) {
	r := s.env.Start(dbChanged())
	s.set(r, own, to("a", "1"))
	s.set(r, own, to("a", "", "private-address", "", "never-was", ""))
	s.same("own settings", map[string]string{}, s.settings(r, "wordpress/0"))
	s.commit(r)
	s.same("committed", map[string]string{}, s.committed("wordpress/0"))
}

func serviceNode(s suite) {
	s.env.Lead("wordpress", "wordpress/0")
	r := s.env.Start(dbChanged())
	mine := hookapi.Node{Relation: 0, Service: "wordpress"}
	s.same("of mysql", map[string]string{"app": "data"}, s.node(r, hookapi.Node{Relation: 0, Service: "mysql"}))
	s.set(r, mine, to("mine", "", "new", "1"))
	s.same("own", map[string]string{"new": "1"}, s.node(r, mine))
	s.same("of the unit", map[string]string{"private-address": "10.0.3.7"}, s.settings(r, "wordpress/0"))
	s.commit(r)
	stranger := s.env.Start(plain("mysql/0", "mysql"))
	defer stranger.Abort()
	s.same("committed", map[string]string{"new": "1"}, s.node(stranger, mine))
	_, err := stranger.Settings(s.ctx(), hookapi.Node{Relation: 0, Service: "haproxy"})
	s.fails("settings of a service that is no end", hookapi.ErrUnknownUnit, err)
}

func departedReadable(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	s.same("settings", map[string]string{"private-address": "10.0.3.12", "user": "departed"}, s.settings(r, "mysql/2"))
}

func leavesMeanwhile(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	s.env.Leave(0, "mysql/1")
	s.same("settings", map[string]string{"private-address": "10.0.3.9"}, s.settings(r, "mysql/1"))
}

func unknownUnit(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	for _, unit := range []string{"foo/9", "mysql/99"} {
		_, err := r.Settings(s.ctx(), hookapi.Node{Relation: 0, Unit: unit})
		s.fails("Settings of "+unit, hookapi.ErrUnknownUnit, err)
		err = r.SetSettings(s.ctx(), hookapi.Node{Relation: 0, Unit: unit}, to("a", "b"))
		s.fails("SetSettings of "+unit, hookapi.ErrUnknownUnit, err)
	}
}

func otherRelationsUnit(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	_, err := r.Settings(s.ctx(), hookapi.Node{Relation: 0, Unit: "haproxy/0"})
	s.fails("Settings of haproxy/0", hookapi.ErrUnknownUnit, err)
}

func memberWithoutSettings(s suite) {
	s.env.Join(1, "haproxy/1", nil)
	r := s.env.Start(dbChanged())
	defer r.Abort()
	got := s.node(r, hookapi.Node{Relation: 1, Unit: "haproxy/1"})
	s.same("number of settings", 0, len(got))
}

func largeValue(s suite) {
	large := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	r := s.env.Start(dbChanged())
	s.set(r, own, to("large", large))
	if s.settings(r, "wordpress/0")["large"] != large {
		s.Error("own large value changed on its way")
	}
	s.commit(r)
	if s.committed("wordpress/0")["large"] != large {
		s.Error("committed large value changed on its way")
	}
}

func parallel(s suite) {
	r := s.env.Start(dbChanged())
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			key := fmt.Sprintf("k%d", i)
			if err := r.SetSettings(s.ctx(), own, to(key, "1")); err != nil {
				s.Errorf("SetSettings: %v", err)
			}
			got, err := r.Settings(s.ctx(), own)
			if err != nil || got[key] != "1" {
				s.Errorf("own write of %s not seen: %v, %v", key, got, err)
			}
		})
	}
	wait.Wait()
	s.commit(r)
	s.same("committed keys", 9, len(s.committed("wordpress/0")))
}

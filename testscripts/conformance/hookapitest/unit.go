package hookapitest

import (
	"errors"

	"bijou/hookenv/hookapi"
)

func unitTests() []test {
	return []test{
		{"config has its types, unset options are nil", config},
		{"addresses", addresses},
		{"ports are seen by their hook at once and kept at its success", ports},
		{"ports of a failed hook are dropped", portsDropped},
		{"opening twice and closing what is closed are no errors", portsTwice},
		{"ports sort: icmp, then protocol and number", portsSorted},
		{"a range that overlaps another unit's is refused", portConflict},
		{"a range that overlaps another of the unit's own is refused", portConflictWithItself},
		{"a range that overlaps another of the unit's own is not closed", closeOverlapping},
		{"status takes effect at once, whatever becomes of the hook", statusAtOnce},
		{"the service's status is another", serviceStatus},
	}
}

func config(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	got, err := r.Config(s.ctx())
	s.fails("Config", nil, err)
	s.same("Config", Standard().Config, got)
}

func addresses(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	private, err := r.Address(s.ctx(), false)
	s.fails("Address", nil, err)
	s.same("private", "10.0.3.7", private)
	public, err := r.Address(s.ctx(), true)
	s.fails("Address", nil, err)
	s.same("public", "203.0.113.10", public)
}

var (
	http  = hookapi.Port{From: 80, To: 80, Protocol: "tcp"}
	dns   = hookapi.Port{From: 53, To: 53, Protocol: "udp"}
	ping  = hookapi.Port{Protocol: "icmp"}
	block = hookapi.Port{From: 100, To: 200, Protocol: "tcp"}
)

func (s suite) port(h hookapi.Hook, p hookapi.Port, open bool) {
	s.Helper()
	if err := h.SetPort(s.ctx(), "", p, open); err != nil {
		s.Fatalf("SetPort(%+v, %v): %v", p, open, err)
	}
}

// open compares a hook's open ports with want.
func (s suite) open(h hookapi.Hook, want ...hookapi.Port) {
	s.Helper()
	got, err := h.Ports(s.ctx())
	s.fails("Ports", nil, err)
	if len(want) == 0 && len(got) == 0 {
		return
	}
	s.same("Ports", want, got)
}

func ports(s suite) {
	r := s.env.Start(dbChanged())
	s.open(r)
	s.port(r, http, true)
	s.port(r, block, true)
	s.open(r, http, block)
	s.commit(r)
	next := s.env.Start(dbChanged())
	s.open(next, http, block)
	s.port(next, http, false)
	s.open(next, block)
	s.commit(next)
	last := s.env.Start(dbChanged())
	defer last.Abort()
	s.open(last, block)
}

func portsDropped(s suite) {
	r := s.env.Start(dbChanged())
	s.port(r, http, true)
	r.Abort()
	next := s.env.Start(dbChanged())
	defer next.Abort()
	s.open(next)
}

func portsTwice(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	s.port(r, http, true)
	s.port(r, http, true)
	s.port(r, dns, false)
	s.port(r, block, true)
	s.port(r, hookapi.Port{From: 150, To: 150, Protocol: "tcp"}, false)
	s.open(r, http, block)
}

func portsSorted(s suite) {
	r := s.env.Start(dbChanged())
	defer r.Abort()
	for _, p := range []hookapi.Port{dns, block, http, ping} {
		s.port(r, p, true)
	}
	s.open(r, ping, http, block, dns)
}

// portConflictWithItself checks that a unit cannot open a range that overlaps another of its own ranges. The
// same range, even for an endpoint, does not count as overlapping, and neither does a range that the hook has
// closed.
func portConflictWithItself(s suite) {
	r := s.env.Start(dbChanged())
	s.port(r, block, true)
	s.commit(r)

	next := s.env.Start(dbChanged())
	defer next.Abort()
	forEndpoint := block
	forEndpoint.Endpoint = "db"
	s.port(next, block, true)
	s.port(next, forEndpoint, true)
	s.port(next, hookapi.Port{From: 150, To: 160, Protocol: "udp"}, true)
	s.port(next, hookapi.Port{From: 201, To: 210, Protocol: "tcp"}, true)

	for _, want := range []hookapi.Port{{From: 150, To: 150, Protocol: "tcp"}, {From: 90, To: 100, Protocol: "tcp", Endpoint: "db"}} {
		var conflict *hookapi.PortConflict
		if err := next.SetPort(s.ctx(), "", want, true); !errors.As(err, &conflict) || conflict.Unit != "wordpress/0" {
			s.Fatalf("SetPort(%v): %v", want, err)
		}
	}
	var conflict *hookapi.PortConflict
	if err := next.SetPort(s.ctx(), "", hookapi.Port{From: 205, To: 205, Protocol: "tcp"}, true); !errors.As(err, &conflict) {
		s.Fatalf("it may open a part of what it has opened before: %v", err)
	}

	s.port(next, block, false)
	s.port(next, forEndpoint, false)
	s.port(next, hookapi.Port{From: 150, To: 150, Protocol: "tcp"}, true)
}

// closeOverlapping checks that a hook must close a range that was open before it exactly as the range was
// opened. Closing a range that is not open is allowed.
func closeOverlapping(s suite) {
	r := s.env.Start(dbChanged())
	s.port(r, block, true)
	s.commit(r)

	next := s.env.Start(dbChanged())
	defer next.Abort()
	s.port(next, hookapi.Port{From: 300, To: 310, Protocol: "tcp"}, true)
	for _, want := range []hookapi.Port{
		{From: 150, To: 150, Protocol: "tcp"}, {From: 90, To: 100, Protocol: "tcp"}, {From: 90, To: 250, Protocol: "tcp"},
		{From: 150, To: 150, Protocol: "tcp", Endpoint: "db"},
	} {
		var conflict *hookapi.PortConflict
		err := next.SetPort(s.ctx(), "", want, false)
		if !errors.As(err, &conflict) || conflict.Unit != "wordpress/0" || !conflict.Closing {
			s.Fatalf("SetPort(%v) to close: %v", want, err)
		}
	}
	s.port(next, hookapi.Port{From: 150, To: 150, Protocol: "udp"}, false)
	s.port(next, hookapi.Port{From: 201, To: 299, Protocol: "tcp"}, false)
	// This hook has opened the port itself.
	s.port(next, hookapi.Port{From: 305, To: 305, Protocol: "tcp"}, false)
	s.port(next, block, false)
	s.port(next, hookapi.Port{From: 150, To: 150, Protocol: "tcp"}, false)
}

// portConflict checks conflicts between units, all of which are on one machine in the suite's world.
func portConflict(s suite) {
	r := s.env.Start(dbChanged())
	s.port(r, block, true)
	s.commit(r)
	other := s.env.Start(plain("mysql/0", "mysql"))
	defer other.Abort()
	s.port(other, http, true)
	s.port(other, ping, true)
	s.port(other, hookapi.Port{From: 150, To: 150, Protocol: "udp"}, true)
	within := hookapi.Port{From: 150, To: 160, Protocol: "tcp"}
	err := other.SetPort(s.ctx(), "", within, true)
	var conflict *hookapi.PortConflict
	if !errors.As(err, &conflict) {
		s.Fatalf("SetPort(%v): %v", within, err)
	}
	s.same("conflict", hookapi.PortConflict{Unit: "wordpress/0", Open: block, Want: within}, *conflict)
	s.port(other, within, false)
	s.open(other, ping, http, hookapi.Port{From: 150, To: 150, Protocol: "udp"})
}

// status reads a unit's workload status without its data, since agents may add to the data.
func (s suite) status(h hookapi.Hook, ofService bool) hookapi.Status {
	s.Helper()
	got, err := h.Status(s.ctx(), ofService)
	s.fails("Status", nil, err)
	// The status may also be empty if nobody has set one.
	if got.Status == "unknown" {
		got.Status = ""
	}
	return hookapi.Status{Status: got.Status, Message: got.Message}
}

func statusAtOnce(s suite) {
	r := s.env.Start(dbChanged())
	s.same("before", hookapi.Status{}, s.status(r, false))
	want := hookapi.Status{Status: "blocked", Message: "needs a database"}
	s.fails("SetStatus", nil, r.SetStatus(s.ctx(), false, want))
	s.same("at once", want, s.status(r, false))
	r.Abort()
	next := s.env.Start(dbChanged())
	defer next.Abort()
	s.same("after the failed hook", want, s.status(next, false))
}

func serviceStatus(s suite) {
	s.env.Lead("wordpress", "wordpress/0")
	r := s.env.Start(dbChanged())
	defer r.Abort()
	want := hookapi.Status{Status: "active", Message: "all of us"}
	s.fails("SetStatus", nil, r.SetStatus(s.ctx(), true, want))
	s.same("the service's", want, s.status(r, true))
	s.same("the unit's", hookapi.Status{}, s.status(r, false))
	all, err := r.Status(s.ctx(), true)
	if _, own := all.Units["wordpress/0"]; err != nil || !own {
		s.Errorf("the service's status has units %v, %v", all.Units, err)
	}
	s.env.Lead("wordpress", "wordpress/1")
	next := s.env.Start(dbChanged())
	defer next.Abort()
	s.fails("SetStatus of a unit that does not lead", hookapi.ErrNotLeader, next.SetStatus(s.ctx(), true, want))
	s.same("which everybody reads", want, s.status(next, true))
}

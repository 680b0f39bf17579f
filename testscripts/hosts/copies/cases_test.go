package copies

import (
	"fmt"
	"testing"
	"time"

	"bijou/testscripts/kit/judge"
)

// other is an agent that must not run, with the place and the way in which it is started.
type other struct {
	name   string
	unit   string // systemd's
	host   int
	folder string
	make   string // the command on host 0 whose output host unpacks into folder
	tenths int    // the duration of the hook that runs when the store goes away; it may end before the store is back
}

// TestHosts repeatedly starts agents that must not run, while the store is away for longer than a
// session lives, in the middle of a hook.
func TestHosts(t *testing.T) {
	p := newPair(t)
	for _, o := range []other{
		{"a copy on the same host", "copy-same", 0, "/root/copy", "tar -C " + env + " -c .", 600},
		{"a copy on another host", "copy-other", 1, env, "tar -C " + env + " -c .", 600},
		{"the wrong machine's number on another host", "copy-wrong", 1, "/srv/bijou", "tar -C " + env + " -c environment.yaml tools", 250},
	} {
		p.beside(o)
	}
	checkOrder(t, p.all())
}

// beside repeatedly starts an agent that must not run, and suspends the store. It then checks that every hook
// ran in one place only.
func (p *pair) beside(o other) {
	p.t.Helper()
	began := time.Now().UnixMicro()
	defer func() { checkRuns(p.t, o.name, since(p.all(), began)) }() // checks this even if the units never settle
	p.order(20, 50)
	halt := p.drive()
	p.unpack(o)
	stop := p.insist(o)
	p.awaitHooks(0, 3)
	p.order(o.tenths, o.tenths)
	hook := p.awaitLong(0)
	p.order(20, 50)
	p.on(0, "systemctl kill --signal=STOP etcd")
	time.Sleep(outage)
	p.on(0, "systemctl kill --signal=CONT etcd")
	p.awaitHooks(0, 3)
	refused := stop()
	halt()
	p.order(1, 2)
	p.settle()
	fmt.Printf("copies: %s: its agent was refused %s times\n", o.name, refused)
	if refused == "0" {
		p.t.Errorf("%s: its agent was never refused", o.name)
	}
	if o.tenths > 500 {
		checkOutlived(p.t, hook, p.events(0))
	}
}

// since returns the events from the first run that began at that time or later.
func since(events []judge.Event, at int64) (later []judge.Event) {
	for i, e := range events {
		if e.At >= at && (e.Event == judge.Begin || len(later) > 0) {
			return events[i:]
		}
	}
	return nil
}

// unpack creates the directory on its host. The files go through this machine.
func (p *pair) unpack(o other) {
	p.t.Helper()
	p.on(0, o.make+" >/root/folder.tar")
	if o.host != 0 {
		p.copy(o.host, p.hosts[0].Disk("/root/folder.tar"), "/root/folder.tar")
	}
	p.on(o.host, "mkdir -p "+o.folder+" && tar -C "+o.folder+" -x -f /root/folder.tar")
}

// insist starts the agent again and again, as a service manager does, until stop is called. stop returns the
// number of times that the agent was refused.
func (p *pair) insist(o other) (stop func() string) {
	p.t.Helper()
	p.on(o.host, "systemd-run --quiet --unit="+o.unit+" --property=Restart=always --property=RestartSec=3 --setenv=HOME=/root "+
		"bash -c 'exec "+o.folder+"/tools/*/machine-agent --machine 0 --env "+o.folder+"'")
	return func() string {
		p.t.Helper()
		p.on(o.host, "systemctl stop "+o.unit)
		return p.on(o.host, "journalctl --no-pager -o cat -u "+o.unit+" | grep -c '^error: .* is held by' || true")
	}
}

package copies

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/fleet"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/need"
)

const (
	env    = "/root/.bijou/default" // the environment's directory on each host that has one
	orders = "/root/orders"
	record = "/root/record"
)

// pair is two hosts. The store and the environment's one machine, with one unit, are on host 0.
type pair struct {
	t     *testing.T
	hosts []*fleet.Host
	url   string // of the state
}

// newPair boots the hosts and starts the unit on host 0.
func newPair(t *testing.T) *pair {
	t.Helper()
	need.Long(t)
	fleet.Need(t)
	etcdtest.Need(t)
	p := &pair{t: t, hosts: fleet.New(t, 2).Hosts()}
	p.url = "etcd://" + p.hosts[0].Address + ":2379/copies/env"
	binary, charm := product(t), filepath.Join(t.TempDir(), "recorder")
	makeCharm(t, charm, orders, record)
	witness, err := os.Executable()
	check(t, err)
	for i := range p.hosts {
		p.copy(i, binary, "/opt/bijou/bijou")
		p.on(i, "/opt/bijou/bijou install --dir /usr/local/bin")
	}
	p.order(1, 2)
	p.copy(0, charm, "/root/recorder")
	p.copy(0, witness, "/opt/bijou/copies.test")
	p.startEtcd()
	p.on(0, "juju bootstrap --config update-status-interval=0 --state '"+p.url+"'")
	p.on(0, "juju deploy /root/recorder app")
	p.awaitHooks(0, 3) // install, config-changed, start
	return p
}

// etcdUnit is the store's unit file.
const etcdUnit = `[Unit]
Description=etcd
[Service]
Type=notify
ExecStart=/opt/etcd --data-dir=/var/lib/etcd --log-level=error --unsafe-no-fsync \
  --listen-client-urls=http://%[1]s:2379 --advertise-client-urls=http://%[1]s:2379
`

func (p *pair) startEtcd() {
	p.t.Helper()
	binary, err := etcdtest.Binary()
	check(p.t, err)
	p.copy(0, binary, "/opt/etcd")
	p.write(0, "/etc/systemd/system/etcd.service", fmt.Sprintf(etcdUnit, p.hosts[0].Address))
	p.on(0, "systemctl daemon-reload && systemctl start etcd")
}

// copy copies a file or directory to a host.
func (p *pair) copy(host int, from, to string) {
	p.t.Helper()
	p.hosts[host].Put(p.t, from, to)
}

// write writes a file on a host.
func (p *pair) write(host int, path, content string) {
	p.t.Helper()
	p.hosts[host].Write(p.t, path, content, 0o644)
}

// on runs a shell command on a host and returns its output.
func (p *pair) on(host int, line string) string {
	p.t.Helper()
	return p.hosts[host].On(p.t, line)
}

// order sets the duration of later hooks on both hosts, in tenths of a second.
func (p *pair) order(least, most int) {
	p.t.Helper()
	for _, h := range p.hosts {
		writeTenths(p.t, h.Disk(orders), least, most)
	}
}

// events returns the events of one host's record, which does not exist before the first hook.
func (p *pair) events(host int) []judge.Event {
	p.t.Helper()
	events, err := judge.Read(p.hosts[host].Disk(record))
	check(p.t, err)
	return events
}

// all returns the events of both hosts in order.
func (p *pair) all() []judge.Event {
	p.t.Helper()
	return judge.Merge(append(p.events(0), p.events(1)...))
}

// awaitHooks waits until n more runs have ended on a host, in addition to the runs that have begun already.
func (p *pair) awaitHooks(host, n int) {
	p.t.Helper()
	awaitHooks(n, func() []judge.Event { return p.events(host) }, p.eventually)
}

// awaitLong waits for a hook on a host that will still run for a long time, and returns it.
func (p *pair) awaitLong(host int) (hook judge.Span) {
	p.t.Helper()
	return awaitLong(func() []judge.Event { return p.events(host) }, p.eventually)
}

func (p *pair) eventually(what string, not func() string) {
	p.t.Helper()
	await.Until(p.t, await.Poll{Limit: limit, Pause: 100 * time.Millisecond, Report: p.everything}, what, not)
}

// everything returns all information that helps to find the cause of a failure.
func (p *pair) everything() string {
	return fleet.Report(p.hosts, func(int) string {
		return "timeout 20 juju status; tail -n 30 " + env + "/machines/0/agent.log " + record + "; journalctl --no-pager -n 10 -u 'copy-*'"
	})
}

// drive changes the unit's settings until halt is called.
func (p *pair) drive() (halt func()) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C: // the command may fail while the store is away
				_, _ = p.hosts[0].Shell(fmt.Sprintf("timeout 20 juju set app set=turn=%d", n))
			}
		}
	})
	halt = sync.OnceFunc(func() { close(stop); running.Wait() })
	p.t.Cleanup(halt)
	return halt
}

package boot

import (
	"fmt"
	"slices"
	"time"
)

// turn is the record of the server whose turn it is to update a rolling component.
type turn struct{ Server int }

// partitionInTurn cuts off the server whose updater leads while its etcd is being restarted. Another updater
// must lead, and no other etcd may be restarted until the server is back.
func partitionInTurn(w *world, p *parts) {
	w.hears()
	w.otherEtcd(p.next())
	lost := w.leader()
	w.publish(*p)
	w.soon("its etcd is restarted", func() bool { return w.restartsEtcd(lost) })
	w.check(w.fleet.Host(lost).Link(false))
	began := time.Now()
	var r request
	w.eventually("another leader names it", func() bool { return w.look("status/current", &r) && slices.Equal(r.Missing, []int{10 + lost}) })
	fmt.Printf("boot: host %d, which led, was cut off, and was named after %.1f s\n", lost, time.Since(began).Seconds())
	var holds turn
	if !w.look("leader/turn/etcd", &holds) || holds.Server != 10+lost {
		w.t.Errorf("server %d restarts its etcd, and the turn is that of %d", 10+lost, holds.Server)
	}
	for host := range 3 {
		if host != lost && w.restartsEtcd(host) {
			w.t.Errorf("host %d restarts its etcd, too", host)
		}
	}
	if next := w.leader(); next == lost {
		w.t.Errorf("host %d leads still", lost)
	}
	w.check(w.fleet.Host(lost).Link(true))
	w.succeeds(p.version)
	w.reported(p.version, "succeeded")
}

package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// healthTimeout is how long one endpoint may take to say how it is.
const healthTimeout = 2 * time.Second

// Health asks each endpoint by itself how it is, and returns what it says, or why it does
// not answer.
func (d *db) Health(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	said := make([]string, len(d.place.endpoints))
	var asking sync.WaitGroup
	for i, endpoint := range d.place.endpoints {
		asking.Go(func() {
			s, err := d.client.Status(ctx, endpoint)
			switch {
			case err != nil:
				said[i] = "does not answer: " + err.Error()
			case s.Leader == 0:
				said[i] = fmt.Sprintf("etcd %s sees no leader: it is cut off, or too few members live", s.Version)
			case s.Leader == s.Header.MemberId:
				said[i] = fmt.Sprintf("etcd %s, leads, %d MiB", s.Version, s.DbSize>>20)
			default:
				said[i] = fmt.Sprintf("etcd %s, follows, %d MiB", s.Version, s.DbSize>>20)
			}
		})
	}
	asking.Wait()
	all := map[string]string{}
	for i, endpoint := range d.place.endpoints {
		all[endpoint] = said[i]
	}
	return all
}

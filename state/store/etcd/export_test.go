package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
)

// URL returns the URL of s, which Open has returned.
func URL(s store.Store) string {
	d := s.(*db)
	url := "etcd+unix://"
	for i, e := range d.config.endpoints {
		if i > 0 {
			url += ","
		}
		url += e[len("unix://"):]
	}
	return url + "?prefix=" + d.config.prefix
}

// Client returns the etcd client of s.
func Client(s store.Store) *clientv3.Client { return s.(*db).client }

// Root returns the root of the keys of s.
func Root(s store.Store) string { return s.(*db).keys.root }

// Kill stops s as kill -9 would stop its process: its leases are no longer refreshed or revoked.
func Kill(s store.Store) {
	s.(*db).AbandonLeases()
}

// Epoch returns the number of times that s has found that etcd's history went back.
func Epoch(s store.Store) int { return s.(*db).history.lastSeen().epoch }

// Sweep sweeps tombstones up to the revision, even if there are only a few.
func Sweep(ctx context.Context, s store.Store, upto int64) error {
	return s.(*db).sweeper.sweepUpTo(ctx, upto)
}

// Marks returns the number of tombstones.
func Marks(ctx context.Context, s store.Store) (int64, error) {
	d := s.(*db)
	tombstones := d.keys.tombstoneRange("")
	resp, err := d.get(ctx, tombstones.begin, clientv3.WithRange(tombstones.end), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return resp.Count, nil
}

// AdvisoriesFor is advisoriesFor.
var AdvisoriesFor = advisoriesFor

// AskAdvisories asks the servers at the URL, even if they contain no environment.
func AskAdvisories(ctx context.Context, url string) ([]string, error) {
	p, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	d, err := connect(ctx, p)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Advisories(ctx), nil
}

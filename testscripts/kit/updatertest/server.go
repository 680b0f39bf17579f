package updatertest

import (
	"context"
	"slices"
	"sync"

	"bijou/updater/record"
	"bijou/updater/release"
)

// Server is a fake server that records every step, and can make steps fail or hang.
type Server struct {
	mu      sync.Mutex
	did     []string
	Needs   map[string]bool
	Fail    map[string]error
	Hang    map[string]bool // until its context is done
	On      func(what string)
	NoCheck bool // of members
	Ill     map[int]error
	Rooms   []record.Room
	IsIll   map[string]error // components, with the reason
	Running map[string]bool  // the ill components whose services run
}

func (f *Server) do(ctx context.Context, what string) error {
	f.mu.Lock()
	f.did = append(f.did, what)
	err, hang, on := f.Fail[what], f.Hang[what], f.On
	f.mu.Unlock()
	if on != nil {
		on(what)
	}
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (f *Server) Set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *Server) All() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.did)
}

func (f *Server) Configure(record.Config) error { return nil }

func (f *Server) Differences(context.Context, release.Component) ([]string, error) { return nil, nil }

func (f *Server) Room(release.Manifest) ([]record.Room, map[string]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.Rooms), nil, nil
}

func (f *Server) NeedsUpdate(_ context.Context, c release.Component) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Needs[c.Name], nil
}

func (f *Server) Prepare(context.Context, release.Component) error { return nil }

func (f *Server) Stop(ctx context.Context, c release.Component) error {
	return f.do(ctx, c.Name+"/stop")
}

func (f *Server) Update(ctx context.Context, c release.Component) error {
	err := f.do(ctx, c.Name+"/update")
	if err == nil {
		f.Set(func() { delete(f.Needs, c.Name) })
	}
	return err
}

// Examine returns the result from IsIll.
func (f *Server) Examine(_ context.Context, c release.Component) (ill error, runs bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.IsIll[c.Name], f.Running[c.Name]
}

func (f *Server) CheckHealth(context.Context, release.Component) error { return nil }

func (f *Server) IsRunning(context.Context, release.Component) bool { return true }

func (f *Server) CheckMembers(context.Context, release.Component, []int) (map[int]error, bool) {
	return f.Ill, !f.NoCheck
}

func (f *Server) DeliverContents(ctx context.Context, c release.Component) error {
	return f.do(ctx, c.Contents.Key+"/bring")
}

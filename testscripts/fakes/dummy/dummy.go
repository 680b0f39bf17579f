// Package dummy is a provider for tests. Its instances are lines of a journal in a directory that any
// number of processes can share. Orders can make it fail, permanently or temporarily, hang, return wrong
// answers, be slow, and crash in the middle of a start.
package dummy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"bijou/provision/provider"
)

// Name is the provider's name.
const Name = "dummy"

// Provider is the provider as one process uses it.
type Provider struct {
	dir string
	die func() // a crash

	mu    sync.Mutex
	known known
}

// New returns the provider of an existing directory.
func New(dir string) *Provider {
	return &Provider{dir: dir, known: newKnown(), die: func() {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		// Wait until the signal arrives.
		select {}
	}}
}

// Make returns the provider for an environment. The setting dummy.dir names the provider's directory. Without
// the setting, Make creates one below the environment's directory.
func Make(e provider.Environment) (provider.Provider, error) {
	dir := e.Config["dir"]
	if dir == "" {
		dir = filepath.Join(e.Dir, Name)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create the dummy's directory: %w", err)
	}
	return New(dir), nil
}

// Capabilities reports that its machines are isolated.
func (*Provider) Capabilities(context.Context) (provider.Capabilities, error) {
	return provider.Capabilities{Name: Name, Isolated: true}, nil
}

// Start creates an instance, unless orders say otherwise.
func (p *Provider) Start(ctx context.Context, spec provider.Spec, boot io.Writer) (provider.Instance, error) {
	all, err := p.orders()
	if err != nil {
		return provider.Instance{}, err
	}
	o := all.start(spec.Machine)
	if err := o.prelude(ctx, boot); err != nil {
		return provider.Instance{}, err
	}
	var i provider.Instance
	var dies bool
	err = p.do(func(k *known) (done []event) {
		i, done = k.start(spec)
		if dies = k.crashes[spec.Machine] < o.Crash; dies {
			done = append(done, event{What: crash, Instance: i})
		}
		return done
	})
	if err == nil && dies {
		p.die()
	}
	if o.Answer != nil {
		i = *o.Answer
	}
	return i, err
}

// prelude carries out the orders that come before the instance exists.
func (o StartOrder) prelude(ctx context.Context, boot io.Writer) error {
	for _, line := range o.Boot {
		fmt.Fprintln(boot, line)
		if err := wait(ctx, o.Pause); err != nil {
			return err
		}
	}
	if len(o.Boot) == 0 {
		if err := wait(ctx, o.Pause); err != nil {
			return err
		}
	}
	switch {
	case o.Hang:
		<-ctx.Done()
		return ctx.Err()
	case o.Fail != "":
		return errors.New(o.Fail)
	case o.Busy != "":
		return fmt.Errorf("%s: %w", o.Busy, provider.ErrTransient)
	}
	return ctx.Err()
}

func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start returns the instance with the token, and the events to append so that it runs.
func (k *known) start(spec provider.Spec) (provider.Instance, []event) {
	i, there := k.instances[k.tokens[spec.Token]]
	switch {
	case there && i.Running:
		return i, nil
	case there:
		i.Running = true
		return i, []event{{What: again, Token: spec.Token, Instance: i}}
	}
	i = provider.Instance{
		ID:          fmt.Sprintf("dummy-%s-%d", spec.Machine, k.starts[spec.Token]+1),
		Environment: spec.Environment, Machine: spec.Machine, Running: true,
		Private: "machine-" + spec.Machine + ".dummy", Public: "machine-" + spec.Machine + ".example",
	}
	return i, []event{{What: made, Token: spec.Token, Instance: i}}
}

// Stop ends an instance.
func (p *Provider) Stop(_ context.Context, id string) error {
	o, err := p.orders()
	if err != nil {
		return err
	}
	if why := o.Stop[id]; why != "" {
		return errors.New(why)
	}
	return p.change(id, stopped)
}

// End ends an instance without the provider's knowledge. It no longer runs, but is not removed.
func (p *Provider) End(id string) error { return p.change(id, ended) }

// change records an event of an existing instance.
func (p *Provider) change(id, what string) error {
	return p.do(func(k *known) []event {
		i, there := k.instances[id]
		if !there {
			return nil
		}
		i.Running = false
		return []event{{What: what, Instance: i}}
	})
}

// Instances lists the instances, unless orders say otherwise.
func (p *Provider) Instances(ctx context.Context) ([]provider.Instance, error) {
	o, err := p.orders()
	switch {
	case err != nil:
		return nil, err
	case o.List.Hang:
		<-ctx.Done()
		return nil, ctx.Err()
	case o.List.Fail != "":
		return nil, errors.New(o.List.Fail)
	}
	have, err := p.All()
	have = slices.DeleteFunc(have, func(i provider.Instance) bool { return slices.Contains(o.List.Omit, i.ID) })
	return append(have, o.List.Add...), err
}

// All lists the instances and ignores the orders.
func (p *Provider) All() (have []provider.Instance, err error) {
	err = p.do(func(k *known) []event {
		have = slices.SortedFunc(maps.Values(k.instances), func(a, b provider.Instance) int {
			return cmp.Or(cmp.Compare(len(a.Machine), len(b.Machine)), strings.Compare(a.Machine, b.Machine), strings.Compare(a.ID, b.ID))
		})
		return nil
	})
	return have, err
}

// Starts returns the number of instances that all processes have ever created, by token. Each number is 1 if
// nothing was started twice.
func (p *Provider) Starts() (starts map[string]int, err error) {
	err = p.do(func(k *known) []event {
		starts = maps.Clone(k.starts)
		return nil
	})
	return starts, err
}

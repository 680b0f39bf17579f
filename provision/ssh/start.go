package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"bijou/provision/provider"
)

// start is one start under way.
type start struct {
	spec    provider.Spec
	luggage luggage
	boot    io.Writer
}

// say tells whoever watches the machine boot.
func (s *start) say(format string, args ...any) { fmt.Fprintf(s.boot, format+"\n", args...) }

// Start makes a host the machine and has the agent run there. Cut off anywhere, it
// goes on where it stood when it is called again, on the same host. A machine whose
// host does not answer is never started on another.
func (p *Provider) Start(ctx context.Context, spec provider.Spec, boot io.Writer) (provider.Instance, error) {
	if err := checkID(spec.Machine); err != nil {
		return provider.Instance{}, err
	}
	defer p.one(spec.Machine)()
	i, err := p.start(ctx, spec, boot)
	if err != nil {
		return provider.Instance{}, fmt.Errorf("cannot start machine %s: %w", spec.Machine, err)
	}
	return i, nil
}

func (p *Provider) start(ctx context.Context, spec provider.Spec, boot io.Writer) (provider.Instance, error) {
	l, err := p.pack(spec)
	if err != nil {
		return provider.Instance{}, err
	}
	s := &start{spec: spec, luggage: l, boot: boot}
	c, err := p.choose(ctx, s)
	if err != nil {
		return provider.Instance{}, err
	}
	defer c.close()
	if err := p.deliver(ctx, s, c); err != nil {
		return provider.Instance{}, err
	}
	s.say("starting the agent")
	if _, err := c.run(ctx, "begin", nil, p.dir(), l.tools, spec.Machine, p.unit(spec.Machine), p.systemd); err != nil {
		return provider.Instance{}, cannot("start the agent on", c.target, err)
	}
	p.heard(c.target)
	return p.instance(c.target, spec.Machine, true), nil
}

// deliver copies what the agent needs, and is not there yet.
func (p *Provider) deliver(ctx context.Context, s *start, c *conn) error {
	l := s.luggage
	if _, err := c.run(ctx, "prepare", nil, p.dir(), l.tools, s.spec.Machine); err != nil {
		return cannot("prepare", c.target, err)
	}
	path := p.dir() + "/tools/" + l.tools + "/bijou"
	has, err := c.run(ctx, "holds", nil, path, l.sum)
	if err != nil {
		return cannot("look at the binary on", c.target, err)
	}
	if strings.TrimSpace(has) != "yes" {
		if err := p.copy(ctx, s, c, path); err != nil {
			return err
		}
	}
	for _, f := range l.files {
		if _, err := c.run(ctx, "receive", bytes.NewReader(f.data), p.dir()+"/"+f.path, f.mode, hexSum(f.data)); err != nil {
			return cannot("copy "+f.path+" to", c.target, err)
		}
	}
	return nil
}

// copy copies the binary.
func (p *Provider) copy(ctx context.Context, s *start, c *conn, path string) error {
	binary, err := os.Open(s.luggage.binary)
	if err != nil {
		return fmt.Errorf("cannot read the binary for the host: %w", err)
	}
	defer binary.Close()
	s.say("copying the binary, %d MB", s.luggage.size>>20)
	began := time.Now()
	if _, err := c.run(ctx, "receive", binary, path, "755", s.luggage.sum); err != nil {
		return cannot("copy the binary to", c.target, err)
	}
	s.say("copied in %s, and its sha256 is right", time.Since(began).Round(time.Millisecond))
	return nil
}

// cannot says what could not be done on a host; a full disk is said as such.
func cannot(verb string, t target, err error) error {
	err = fmt.Errorf("cannot %s host %q: %w", verb, t, err)
	var f failed
	if errors.As(err, &f) && strings.Contains(f.said, "No space left on device") {
		return advise(err, "its disk is full, and nothing of what was copied half was left there; make room, then: juju resolved MACHINE")
	}
	return err
}

package updater

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bijou/state"
	"bijou/updater/record"
	"bijou/updater/release"
)

// check looks for releases: when the interval is over, when an operator asks for
// it, and when it is configured anew where and which. What goes wrong is tried
// again, later each time.
func (l leader) check(ctx context.Context) error {
	k := Keys()
	v := newSight(l.Store, k.AllConfig(), k.Infos())
	c := checker{leader: l}
	defer c.close()
	return watching(ctx, v, func() error {
		for ctx.Err() == nil {
			until, err := c.turn(ctx)
			if over(err) {
				return err
			}
			if err != nil {
				slog.Warn("cannot look for releases; trying again", "error", err)
				until = time.Now().Add(again)
			}
			await(ctx, v.bell, until)
			v.changed() // whatever it is, all is read again
		}
		return nil
	})
}

// checker knows when it looked last, and what came of it.
type checker struct {
	leader
	source   *release.Source
	asked    question // what the last check was about
	last     time.Time
	failures int           // in a row
	delay    time.Duration // after a failure
}

// question is what a check depends on. Another one is asked at once.
type question struct {
	env, prefix, repository, url, token, proxy, key string
	mark                                            string // of the operator who asked for it
	want                                            string // the version that servers would take next
	known                                           bool   // what that consists of
}

// turn checks if it is time, and says when to come again.
func (c *checker) turn(ctx context.Context) (until time.Time, err error) {
	config, q, err := c.read(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if config.GitHubRepository == "" || config.Env == record.EnvNone && q.want == "" {
		c.asked = question{}
		return time.Time{}, nil
	}
	if c.source == nil || q.place() != c.asked.place() {
		if err := c.turnTo(config); err != nil {
			return time.Time{}, err
		}
	}
	if q == c.asked && time.Now().Before(c.due(config)) {
		return c.due(config), nil
	}
	c.asked = q
	if err := c.look(ctx, config); err != nil {
		return time.Time{}, err
	}
	return c.due(config), nil
}

// read reads the configuration and what is asked for.
func (c *checker) read(ctx context.Context) (config record.Config, q question, err error) {
	err = c.Store.View(ctx, func(v *state.KeyView) error {
		if config, err = LoadConfig(v); err != nil || config.GitHubRepository == "" {
			return err
		}
		s, err := Load(v, c.Version)
		if err != nil {
			return err
		}
		config, q = s.Config, questionOf(s.Config)
		q.want, _, _ = s.offered()
		q.known = s.Published != nil && release.Same(s.Published.Version, q.want)
		if mark, err := read[string](v, Keys().Check()); err != nil || mark == nil {
			return err
		} else {
			q.mark = *mark
		}
		return nil
	})
	return config, q, err
}

func questionOf(c record.Config) question {
	return question{env: c.Env, prefix: c.TagPrefix, repository: c.GitHubRepository, url: c.GitHubURL, token: c.GitHubToken, proxy: c.Proxy, key: c.MinisignKey}
}

// place is the question without who asks, and for what.
func (q question) place() question {
	q.mark, q.want, q.known = "", "", false
	return q
}

// due is when to look next.
func (c *checker) due(config record.Config) time.Time {
	if c.failures > 0 {
		return c.last.Add(c.delay)
	}
	return c.last.Add(config.CheckInterval)
}

// turnTo takes up another source.
func (c *checker) turnTo(config record.Config) error {
	c.close()
	c.failures = 0
	source, err := release.NewSource(config)
	c.source = source
	return err
}

func (c *checker) close() {
	if c.source != nil {
		c.source.Close()
		c.source = nil
	}
}

// look asks the source, and writes down what it says, or why it says nothing.
func (c *checker) look(ctx context.Context, config record.Config) error {
	f, err := c.find(ctx)
	c.last = time.Now()
	c.Metrics.checked(err)
	if ctx.Err() != nil {
		return nil
	}
	if c.failures++; err == nil {
		c.failures = 0
	} else {
		c.delay = release.Delay(err, c.failures, config.CheckInterval, c.last)
		slog.Warn("cannot look for releases", "error", err, "again-in", c.delay.Round(time.Second))
	}
	return c.note(ctx, config, func(tx *state.KeyTx) (failed error) {
		if err == nil {
			tx.Remove(Keys().CheckFailure())
		} else {
			failed = f.refuse(tx, err, c.last.UTC())
		}
		if f.listed {
			failed = errors.Join(failed, f.offer(tx))
		}
		return failed
	})
}

// errAsked: something else is asked meanwhile.
var errAsked = errors.New("the configuration has changed")

// note writes what came of a check, unless it was configured anew meanwhile: then
// that is looked for.
func (c *checker) note(ctx context.Context, config record.Config, f func(tx *state.KeyTx) error) error {
	err := c.leadership.Update(ctx, func(tx *state.KeyTx) error {
		now, err := LoadConfig(tx.KeyView)
		if err != nil {
			return err
		}
		if questionOf(now) != questionOf(config) {
			return errAsked
		}
		return f(tx)
	})
	if errors.Is(err, errAsked) {
		return nil
	}
	return err
}

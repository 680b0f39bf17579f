package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"bijou/updater/release"
)

// answerLimit is how long one health check may take.
const answerLimit = 10 * time.Second

// Well tells if this server's part of the component is well: its services run,
// its health check agrees, and what comes after their start was done. The error
// says what is the matter.
func (h *Host) Well(ctx context.Context, c release.Component) error {
	was, err := h.recall(c.Name)
	if err != nil {
		return err
	}
	if was.Phase == starting {
		return errors.New("what comes after its start was not done")
	}
	return h.works(ctx, c)
}

// works tells if the services run and the health check agrees.
func (h *Host) works(ctx context.Context, c release.Component) error {
	if err := h.active(ctx, c.Services); err != nil {
		return err
	}
	if c.Health == nil {
		return nil
	}
	return h.check(ctx, *c.Health)
}

// Others tells how many of those servers' members of the component are well, as
// the component's check of members finds out; asked is false if it has none.
func (h *Host) Others(ctx context.Context, c release.Component, lrns []int) (well int, asked bool) {
	if c.Members == nil {
		return 0, false
	}
	answers := make([]bool, len(lrns))
	var asking sync.WaitGroup
	for i, lrn := range lrns {
		asking.Go(func() { answers[i] = h.check(ctx, about(*c.Members, lrn)) == nil })
	}
	asking.Wait()
	for _, yes := range answers {
		if yes {
			well++
		}
	}
	return well, true
}

// about makes the check of one server's member.
func about(m release.Health, lrn int) release.Health {
	fill := func(s string) string { return strings.ReplaceAll(s, "{lrn}", strconv.Itoa(lrn)) }
	m.HTTP, m.Command = fill(m.HTTP), slices.Clone(m.Command)
	for i := range m.Command {
		m.Command[i] = fill(m.Command[i])
	}
	return m
}

func (h *Host) check(ctx context.Context, c release.Health) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if c.HTTP != "" {
		return h.checkHTTP(ctx, c.HTTP)
	}
	return run(ctx, c.Command, nil)
}

// checkHTTP wants the answer 200.
func (h *Host) checkHTTP(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := h.neighbours.Do(req)
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", url, err)
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, resp.Status, tail(said))
	}
	return nil
}

// killDelay is how long a command whose children hold its output is waited for.
const killDelay = time.Second

// command makes a command that ends soon with its context: its children do not
// outlive it, and who holds its output is not waited for.
func command(ctx context.Context, words []string) *exec.Cmd {
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.WaitDelay = killDelay
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c
}

// run runs a command with that on its stdin. The error says how it ended and what
// it said; but not of one that was told something, which may be a secret: the
// command may repeat any part of that.
func run(ctx context.Context, words []string, stdin io.Reader) error {
	c := command(ctx, words)
	c.Stdin = stdin
	out, err := c.CombinedOutput()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if stdin != nil {
		return fmt.Errorf("%q: %w (what it said is not shown)", words[0], err)
	}
	return fmt.Errorf("%q: %w: %s", words[0], err, tail(out))
}

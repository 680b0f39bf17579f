package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bijou/updater/release"
)

// answerTimeout bounds one health check.
const answerTimeout = 10 * time.Second

// CheckHealth returns nil if this server's part of the component is healthy: its services
// run, its health check agrees, and the command after its start was run. Else the error
// says what is the matter.
func (h *Host) CheckHealth(ctx context.Context, c release.Component) error {
	was, err := h.readRecord(c.Name)
	if err != nil {
		return err
	}
	if was.Phase == phaseStarting {
		return errors.New("what comes after its start was not done")
	}
	return h.probe(ctx, c)
}

// IsRunning reports whether the component's services run, whatever its health check says.
func (h *Host) IsRunning(ctx context.Context, c release.Component) bool {
	return h.checkActive(ctx, c.Services) == nil
}

func (h *Host) probe(ctx context.Context, c release.Component) error {
	if err := h.checkActive(ctx, c.Services); err != nil {
		return err
	}
	if c.Health == nil {
		return nil
	}
	return h.runCheck(ctx, *c.Health)
}

// CheckMembers checks those servers' members of the component, as it says how; asked is
// false if it does not.
func (h *Host) CheckMembers(ctx context.Context, c release.Component, lrns []int) (ill map[int]error, asked bool) {
	if c.Members == nil {
		return nil, false
	}
	answers := make([]error, len(lrns))
	var asking sync.WaitGroup
	for i, lrn := range lrns {
		asking.Go(func() { answers[i] = h.runCheck(ctx, memberCheck(*c.Members, lrn)) })
	}
	asking.Wait()
	ill = map[int]error{}
	for i, lrn := range lrns {
		if answers[i] != nil {
			ill[lrn] = answers[i]
		}
	}
	return ill, true
}

func memberCheck(m release.Health, lrn int) release.Health {
	fill := func(s string) string { return strings.ReplaceAll(s, "{lrn}", strconv.Itoa(lrn)) }
	m.HTTP, m.Command = fill(m.HTTP), slices.Clone(m.Command)
	for i := range m.Command {
		m.Command[i] = fill(m.Command[i])
	}
	return m
}

func (h *Host) runCheck(ctx context.Context, c release.Health) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if c.HTTP != "" {
		return h.checkHTTP(ctx, c.HTTP)
	}
	return runCommand(ctx, c.Command)
}

func (h *Host) checkHTTP(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := h.directClient.Do(req)
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

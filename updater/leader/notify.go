package leader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"bijou/updater"
	"bijou/updater/record"
	"bijou/updater/release"
)

// Notify sends an alert to all configured places, and returns the names of those that
// have got it. It returns updater.ErrNoReceiver if there are none.
func Notify(ctx context.Context, config record.Config, a record.Alert) (names []string, err error) {
	all := configuredReceivers(config)
	if len(all) == 0 {
		return nil, updater.ErrNoReceiver
	}
	for _, p := range all {
		failed := p.send(ctx, config, a)
		if failed == nil {
			names = append(names, p.name)
		}
		err = errors.Join(err, failed)
	}
	return names, err
}

// receiver is a place that alerts are sent to.
type receiver struct {
	name    string // the configuration's key
	address string
	body    func(record.Alert) any
}

func configuredReceivers(c record.Config) (all []receiver) {
	if c.NotifySlack != "" {
		all = append(all, receiver{"notify.slack", c.NotifySlack, slackBody})
	}
	if c.NotifyWebhook != "" {
		all = append(all, receiver{"notify.webhook", c.NotifyWebhook, func(a record.Alert) any { return a }})
	}
	return all
}

// slackMessage is the payload of Slack's incoming webhooks:
// https://api.slack.com/messaging/webhooks
type slackMessage struct {
	Text string `json:"text"`
}

func slackBody(a record.Alert) any {
	sign := map[string]string{
		record.AlertSucceeded: ":white_check_mark:", record.AlertStopped: ":x:", record.AlertMissing: ":warning:", record.AlertSlow: ":warning:", record.AlertTwin: ":warning:",
		record.AlertDegraded: ":warning:", record.AlertReplaced: ":warning:", record.AlertRefused: ":warning:",
	}[a.Kind]
	if sign == "" {
		sign = ":information_source:"
	}
	sender := " neco"
	if a.Cluster != "" {
		sender += " of " + a.Cluster
	}
	return slackMessage{Text: sign + sender + ": " + a.Message}
}

// sendTimeout bounds one delivery.
const sendTimeout = 20 * time.Second

// send returns errors without the address, which is a secret.
func (p receiver) send(ctx context.Context, config record.Config, a record.Alert) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if err := p.post(ctx, config, a); err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return fmt.Errorf("cannot send to %s: %w", p.name, err)
	}
	return nil
}

func (p receiver) post(ctx context.Context, config record.Config, a record.Alert) error {
	a.Cluster = config.Cluster
	body, err := json.Marshal(p.body(a))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	client, err := release.NewClient(config.Proxy)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16)) // what the body is of no use
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}

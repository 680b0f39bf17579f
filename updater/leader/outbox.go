package leader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"bijou/state/keyspace"
	"bijou/state/metrics"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// sendAlerts sends the alerts in the outbox, the oldest first, and removes each alert that all receivers have
// received. It does so whenever the outbox or the configuration has changed, and retries failed deliveries after
// growing delays. If the process is killed between sending and removing an alert, the next leader sends the alert
// again.
func (l leader) sendAlerts(ctx context.Context) error {
	p := alertSender{leader: l, sent: map[delivery]bool{}}
	failures := 0
	return l.followKeys(ctx, []string{keys.AllConfig, keys.Outbox}, func() (until time.Time, err error) {
		err = p.sendAll(ctx)
		if err == nil {
			failures = 0
			return time.Time{}, nil
		}
		if endsLeadership(err) {
			return time.Time{}, err
		}

		// The delay doubles with each failure, up to 64 times the first delay.
		delay := updater.RetryInterval << min(failures, 6)
		failures++
		slog.Warn("cannot deliver alerts", "error", err, "again-in", delay)
		return time.Now().Add(delay), err
	})
}

// delivery identifies an alert by its ID, and a receiver by its name.
type delivery struct{ alert, receiver string }

// alertSender remembers which alerts each receiver has already received. If one receiver fails, the alert is
// sent again only to that receiver.
type alertSender struct {
	leader
	sent   map[delivery]bool
	failed map[string]bool // the receivers that have failed in this round
}

// sendAll sends all alerts in the outbox. It removes an alert once every configured receiver has received it. The
// returned error joins the errors of all failed deliveries. If the store cannot be read, or an alert cannot be
// removed, sendAll stops and returns only that error. It sends no further alerts once ctx is done.
func (p alertSender) sendAll(ctx context.Context) error {
	config, alerts, err := p.readOutbox(ctx)
	if err != nil {
		return err
	}

	var failures error
	p.failed = map[string]bool{} // the receivers that fail; p is a copy, so the map is only for this round

	for _, a := range alerts {
		if ctx.Err() != nil {
			break
		}

		sentToAll, err := p.sendAlert(ctx, config, a)
		failures = errors.Join(failures, err)
		if !sentToAll {
			continue
		}
		if err := p.removeAlert(ctx, a); err != nil {
			return err
		}

		// The alert is gone, so sent no longer needs its deliveries.
		for _, to := range configuredReceivers(config) {
			delete(p.sent, delivery{a.ID, to.name})
		}
	}

	return failures
}

// removeAlert removes a sent alert from the outbox. It continues for a moment after ctx ends, since the next
// leader would otherwise send the alert again.
func (p alertSender) removeAlert(ctx context.Context, a record.Alert) error {
	ctx, cancel := withGrace(ctx)
	defer cancel()
	return p.leadership.Update(ctx, func(tx *keyspace.Tx) error {
		tx.Remove(keys.Alert(a.ID))
		return nil
	})
}

// withGrace returns a context that ends ShutdownTimeout after ctx does. Callers use it for work that must not
// be done twice.
func withGrace(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(updater.ShutdownTimeout, cancel) })
	return longer, func() { stop(); cancel() }
}

// readOutbox reads the configuration and the alerts to send, the oldest first. It logs and skips alerts that cannot
// be decoded.
func (p alertSender) readOutbox(ctx context.Context) (config record.Config, alerts []record.Alert, err error) {
	err = p.Store.View(ctx, func(v *keyspace.View) error {
		// View may call this function again.
		alerts = nil
		if config, err = updater.LoadConfig(v); err != nil {
			return err
		}
		kvs, err := v.List(keys.Outbox)
		if err != nil {
			return err
		}

		for _, kv := range kvs {
			a, err := keyspace.Decode[record.Alert](kv)
			// An alert that cannot be read must not block the others.
			if err != nil {
				slog.Error("cannot read an alert, which stays in the store", "key", kv.Key, "error", err)
				continue
			}
			alerts = append(alerts, a)
		}

		return nil
	})

	slices.SortFunc(alerts, func(a, b record.Alert) int { return a.At.Compare(b.At) })
	return config, alerts, err
}

// sendAlert sends the alert, and reports whether all receivers have now received the alert. It skips
// receivers that have failed in this round, so that a hanging receiver does not delay other alerts. Without
// receivers, sendAlert only logs the alert, and returns true. It continues for a moment after ctx ends, to finish a
// delivery.
func (p alertSender) sendAlert(ctx context.Context, config record.Config, a record.Alert) (sentToAll bool, err error) {
	ctx, cancel := withGrace(ctx)
	defer cancel()
	slog.Info("alert", "kind", a.Kind, "message", a.Message)
	sentToAll = true

	for _, to := range configuredReceivers(config) {
		d := delivery{a.ID, to.name}
		if p.sent[d] {
			continue
		}
		if p.failed[to.name] {
			sentToAll = false
			continue
		}

		sendErr := to.send(ctx, config, a)
		isSent := sendErr == nil
		p.Metrics.Add(1, deliveriesMetric, "result", metrics.Result(isSent))
		p.sent[d] = isSent
		p.failed[to.name] = !isSent
		sentToAll = sentToAll && isSent
		err = errors.Join(err, sendErr)
	}

	return sentToAll, err
}

// Notify sends an alert to all configured receivers, and returns the names of the receivers that have
// received the alert. The error joins the errors of all failed deliveries. It is updater.ErrNoReceiver if no
// receiver is configured.
func Notify(ctx context.Context, config record.Config, a record.Alert) (names []string, err error) {
	receivers := configuredReceivers(config)
	if len(receivers) == 0 {
		return nil, updater.ErrNoReceiver
	}

	for _, to := range receivers {
		sendErr := to.send(ctx, config, a)
		if sendErr == nil {
			names = append(names, to.name)
		}
		err = errors.Join(err, sendErr)
	}

	return names, err
}

// receiver is a destination of alerts.
type receiver struct {
	name    string                 // the key in the configuration
	address string                 // the URL to which alerts are posted
	body    func(record.Alert) any // returns the payload for an alert, which is sent as JSON
}

// configuredReceivers returns the receivers of alerts that the configuration names.
func configuredReceivers(c record.Config) (all []receiver) {
	if c.NotifySlack != "" {
		all = append(all, receiver{name: "notify.slack", address: c.NotifySlack, body: slackBody})
	}
	if c.NotifyWebhook != "" {
		all = append(all, receiver{
			name:    "notify.webhook",
			address: c.NotifyWebhook,
			body:    func(a record.Alert) any { return a },
		})
	}
	return all
}

// slackBody returns the payload of Slack's incoming webhooks: https://api.slack.com/messaging/webhooks
func slackBody(a record.Alert) any {
	sign := map[string]string{
		record.AlertSucceeded: ":white_check_mark:",
		record.AlertStopped:   ":x:",
		record.AlertMissing:   ":warning:",
		record.AlertSlow:      ":warning:",
		record.AlertTwin:      ":warning:",
		record.AlertDegraded:  ":warning:",
		record.AlertReplaced:  ":warning:",
		record.AlertRefused:   ":warning:",
	}[a.Kind]

	if sign == "" {
		sign = ":information_source:"
	}
	sender := " neco"
	if a.Cluster != "" {
		sender += " of " + a.Cluster
	}
	return map[string]string{"text": sign + sender + ": " + a.Message}
}

// sendTimeout limits one delivery.
const sendTimeout = 20 * time.Second

// send sends an alert to the receiver. It returns an error if the answer's status is not 2xx. Its errors do not
// show the whole address, which is a secret.
func (p receiver) send(ctx context.Context, config record.Config, a record.Alert) (err error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	defer func() {
		// Only the cause of a url.Error is returned, since its text contains the address.
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		if err != nil {
			err = fmt.Errorf("cannot send the alert to %s: %w", p.name, err)
		}
	}()

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

	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("it answers %s", resp.Status)
	}

	return nil
}

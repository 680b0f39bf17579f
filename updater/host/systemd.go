package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	sd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"

	"bijou/state/backoff"
	"bijou/updater/activity"
)

// Systemd controls this host's systemd by D-Bus. It polls units, and does not wait for signals, since signals
// can be lost.
type Systemd struct{}

// withUnit calls do with a connection to systemd. If systemd disconnects, withUnit calls do again with a new
// connection, up to maxReconnects times. systemd disconnects for a moment while its own package is upgraded. verb
// and unit describe the call in the activity and the error.
func (s Systemd) withUnit(ctx context.Context, verb, unit string, do func(c *sd.Conn) error) error {
	doing := activity.Begin(ctx, "has systemd %s %s", verb, unit)
	defer doing.End()
	err := callOnce(ctx, do)
	for tries := 0; isDisconnected(err) && tries < maxReconnects; tries++ {
		// If ctx is done, the call fails at once.
		_ = backoff.Sleep(ctx, maxPollInterval)
		err = callOnce(ctx, do)
	}

	if err != nil {
		return fmt.Errorf("cannot %s %s: %w", verb, unit, err)
	}

	return nil
}

// callOnce calls do with a connection to systemd. It returns errNoSystemd if this host does not run
// systemd.
func callOnce(ctx context.Context, do func(c *sd.Conn) error) error {
	if _, err := os.Stat("/run/systemd/system"); err != nil { // sd_booted(3)
		return errNoSystemd
	}
	c, err := sd.NewWithContext(ctx)
	if err != nil {
		return err
	}
	defer c.Close()

	return do(c)
}

// maxReconnects allows systemd about half a minute to come back.
const maxReconnects = 100

// isDisconnected reports whether systemd, or the bus, disconnected before it answered.
func isDisconnected(err error) bool {
	return hasDBusName(err, "org.freedesktop.DBus.Error.NoReply") ||
		hasDBusName(err, "org.freedesktop.DBus.Error.Disconnected") ||
		errors.Is(err, dbus.ErrClosed) || errors.Is(err, io.EOF)
}

// hasDBusName reports whether err is the D-Bus error with the given name.
func hasDBusName(err error, name string) bool {
	e, ok := errors.AsType[dbus.Error](err)
	return ok && e.Name == name
}

// unitState is the part of a unit's state on which starting and stopping depend.
type unitState struct {
	load   string // the unit's LoadState, such as "not-found"
	active string // the unit's ActiveState, such as "active" or "failed"
	job    bool   // systemd has a job for the unit, such as starting it
	stale  bool   // the unit's files have changed since systemd read them
}

// readState asks systemd for the state of a unit.
func readState(ctx context.Context, c *sd.Conn, unit string) (unitState, error) {
	p, err := c.GetUnitPropertiesContext(ctx, unit)
	if err != nil {
		return unitState{}, err
	}

	var state unitState
	state.load, _ = p["LoadState"].(string)
	state.active, _ = p["ActiveState"].(string)
	state.stale, _ = p["NeedDaemonReload"].(bool)
	// The property has the number and the path of the job. The number is 0 if there is no job.
	if job, ok := p["Job"].([]any); ok && len(job) > 0 {
		id, _ := job[0].(uint32)
		state.job = id != 0
	}

	return state, nil
}

// Start starts the unit.
func (s Systemd) Start(ctx context.Context, unit string) error {
	return s.startBy(ctx, "start", unit, (*sd.Conn).StartUnitContext)
}

// Restart restarts the unit.
func (s Systemd) Restart(ctx context.Context, unit string) error {
	return s.startBy(ctx, "restart", unit, (*sd.Conn).RestartUnitContext)
}

// startBy removes the unit's hold, and starts or restarts the unit with the method start. It waits until systemd's
// job has ended, and returns an error if the unit has failed. verb names the method in messages.
func (s Systemd) startBy(
	ctx context.Context,
	verb, unit string,
	start func(*sd.Conn, context.Context, string, string, chan<- string) (int, error),
) error {
	return s.withUnit(ctx, verb, unit, func(c *sd.Conn) error {
		if err := reloadIfStale(ctx, c, unit); err != nil {
			return err
		}
		if err := unholdUnit(unit); err != nil {
			return err
		}
		if _, err := start(c, ctx, unit, "replace", nil); err != nil {
			return err
		}

		return awaitJob(ctx, c, unit)
	})
}

// reloadIfStale makes systemd read the unit's files again if they have changed, or if systemd has not found the
// unit. It also resets a failed unit, so that its failures do not count for the next start. A caller that removes
// the hold afterwards does not need another reload, since systemd checks at each start whether the hold exists.
func reloadIfStale(ctx context.Context, c *sd.Conn, unit string) error {
	state, err := readState(ctx, c, unit)
	if err != nil {
		return err
	}

	if state.active == "failed" {
		// If this fails, the unit is started anyway.
		_ = c.ResetFailedUnitContext(ctx, unit)
	}
	if state.stale || state.load == "not-found" {
		return c.ReloadContext(ctx)
	}

	return nil
}

// awaitJob waits until systemd's job for the unit has ended. It returns an error if the unit has failed.
func awaitJob(ctx context.Context, c *sd.Conn, unit string) error {
	return poll(ctx, func() (bool, error) {
		state, err := readState(ctx, c, unit)
		if err != nil {
			return false, err
		}
		if state.job {
			return false, nil
		}
		if state.active == "failed" {
			return false, fmt.Errorf("the unit has failed; to see why: journalctl -u %s", unit)
		}

		return true, nil
	})
}

// stopTimeout is how long a unit can take to stop. systemd kills it after 90 s, unless the unit's file sets a
// different time.
const stopTimeout = 5 * time.Minute

// Stop stops the unit, and holds it so that nothing starts it. If systemd's job has ended but the unit is not
// stopped, for example because it waits for an automatic restart, Stop repeats the request. It gives up after
// stopTimeout.
func (s Systemd) Stop(ctx context.Context, unit string) error {
	return s.withUnit(ctx, "stop", unit, func(c *sd.Conn) error {
		if err := holdUnit(unit); err != nil {
			return err
		}
		// systemd must read the new hold.
		if err := c.ReloadContext(ctx); err != nil {
			return err
		}

		limit, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		wasRequested := false

		err := poll(limit, func() (bool, error) {
			state, err := readState(limit, c, unit)
			isStopped := !state.job && (state.active == "inactive" || state.active == "failed")
			switch {
			case err != nil:
				return false, err
			case isStopped:
				return true, nil
			case wasRequested && state.job:
				// The stop job is still running.
				return false, nil
			}

			wasRequested = true
			_, err = c.StopUnitContext(limit, unit, "replace", nil)
			// A unit that is not loaded is not running.
			if hasDBusName(err, "org.freedesktop.systemd1.NoSuchUnit") {
				err = nil
			}
			return false, err
		})

		if timedOut(ctx, limit) {
			return fmt.Errorf("the unit is still running after %s", stopTimeout)
		}

		return err
	})
}

// IsActive reports whether the unit is running.
func (s Systemd) IsActive(ctx context.Context, unit string) (isActive bool, err error) {
	err = s.withUnit(ctx, "look at", unit, func(c *sd.Conn) error {
		state, err := readState(ctx, c, unit)
		isActive = state.active == "active" || state.active == "reloading"
		return err
	})
	return isActive, err
}

// RunDetached runs the command as a transient unit, which outlives this process, and waits for its end. It first
// waits for the end of a unit of the same name, since systemd runs only one at a time. In two cases it returns
// the result of that unit and starts nothing: with d.Join, if the unit was still running the same command, and
// with d.Resume, if the same command has failed there. Commands with the same title count as the same. If the
// timeout in ctx ends one of the waits, RunDetached kills the unit.
func (s Systemd) RunDetached(ctx context.Context, d Detached) error {
	unit := d.Name + ".service"

	return s.withUnit(ctx, "run", unit, func(c *sd.Conn) error {
		state, err := readState(ctx, c, unit)
		if err != nil {
			return err
		}

		// The unit may still be running or have the result of an earlier command.
		isJoined := d.Join && state.isWorking() && hasTitle(ctx, c, unit, d)
		failed, err := awaitEnd(ctx, c, unit)
		if err != nil {
			return killHung(ctx, c, unit, d, err)
		}

		isResumed := d.Resume && failed && hasTitle(ctx, c, unit, d)
		usesEarlierResult := isJoined || isResumed
		if !usesEarlierResult {
			if err := startTransient(ctx, c, unit, d); err != nil {
				return err
			}
			if failed, err = awaitEnd(ctx, c, unit); err != nil {
				return killHung(ctx, c, unit, d, err)
			}
		}

		forgetTransient(ctx, c, unit) // a later call must not find this result again
		if failed {
			return fmt.Errorf("the unit has failed: %s", readLogTail(d.Log))
		}

		return nil
	})
}

// killHung kills all processes of the transient unit if err shows that the command has exceeded its timeout. It
// then makes systemd forget the unit, so that a retry can start it again. It returns err, with the end of the log
// if it has killed the processes.
func killHung(ctx context.Context, c *sd.Conn, unit string, d Detached, err error) error {
	if _, isHung := errors.AsType[hungError](err); !isHung {
		return err
	}

	// ctx has ended, so the clean-up needs a different context.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	// An error is ignored, since the unit may have ended in the meantime.
	_ = c.KillUnitWithTarget(ctx, unit, sd.All, int32(syscall.SIGKILL))
	forgetTransient(ctx, c, unit)
	return fmt.Errorf("%w: %s", err, readLogTail(d.Log))
}

// isWorking reports whether the unit is starting, running its command, or stopping.
func (s unitState) isWorking() bool {
	return s.active == "activating" || s.active == "deactivating" || s.job
}

// hasTitle reports whether the unit runs, or has run, a command with the title of d.
func hasTitle(ctx context.Context, c *sd.Conn, unit string, d Detached) bool {
	p, err := c.GetUnitPropertyContext(ctx, unit, "Description")
	return err == nil && p.Value.Value() == d.Title
}

// startTransient starts a command as a transient unit, so that it survives this process.
func startTransient(ctx context.Context, c *sd.Conn, unit string, d Detached) error {
	// A previous unit of this name stays until it is forgotten, and would prevent the start.
	forgetTransient(ctx, c, unit)
	logged := append([]string{"/bin/sh", "-c", `log=$1; shift; exec "$@" >"$log" 2>&1`, "sh", d.Log}, d.Command...)
	properties := []sd.Property{
		sd.PropDescription(d.Title),
		sd.PropType("oneshot"),
		sd.PropRemainAfterExit(true),    // keeps the result until it is read
		sd.PropExecStart(logged, false), // true would ignore failures
		{Name: "Environment", Value: dbus.MakeVariant(d.Env)},
	}

	return poll(ctx, func() (bool, error) {
		_, err := c.StartTransientUnitContext(ctx, unit, "fail", properties, nil)
		if hasDBusName(err, "org.freedesktop.systemd1.UnitExists") {
			// systemd has not forgotten the previous unit yet.
			return false, nil
		}
		return true, err
	})
}

// forgetTransient makes systemd forget a transient unit that has ended. It ignores errors, since systemd may
// already have forgotten the unit.
func forgetTransient(ctx context.Context, c *sd.Conn, unit string) {
	_, _ = c.StopUnitContext(ctx, unit, "replace", nil)
	_ = c.ResetFailedUnitContext(ctx, unit)
}

// awaitEnd waits until the unit is no longer working, and reports whether its command has failed.
func awaitEnd(ctx context.Context, c *sd.Conn, unit string) (failed bool, err error) {
	err = poll(ctx, func() (bool, error) {
		state, err := readState(ctx, c, unit)
		failed = state.active == "failed"
		return !state.isWorking(), err
	})
	return failed, err
}

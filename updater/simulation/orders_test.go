package simulation

import (
	"slices"
	"strconv"
	"time"

	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// command is a random operator's command, which may or may not be sensible.
func (w *world) command(*host) {
	s := w.store.snapshot("")
	if w.blind && w.r.IntN(2) == 0 {
		w.replace()
		return
	}
	switch w.r.IntN(15) {
	case 0:
		w.publish()
	case 1:
		w.addServer(1 + w.r.IntN(60))
	case 2:
		w.order("stop", func() ([]updater.Change, error) { return decide.Halt(s, w.operatorTime(), "a look") })
	case 3, 4:
		w.order("recover", func() ([]updater.Change, error) { return decide.Recover(s, w.operatorTime(), "operator") })
	case 5:
		w.order("retry", func() ([]updater.Change, error) { return decide.Retry(s, w.operatorTime(), "") })
	case 6:
		w.pause()
	case 7:
		w.order("resume", func() ([]updater.Change, error) { return []updater.Change{updater.Remove(keys.Pause)}, nil })
	case 8:
		w.unregisterDead()
	case 9:
		w.register()
	case 10:
		w.ask(s)
	case 14:
		w.repair()
	case 12, 13:
		w.replace()
	case 11:
		w.faults["command config"]++
		w.configure([]string{record.EnvProduction, record.EnvStaging, record.EnvNone}[w.r.IntN(3)], []time.Duration{time.Minute, simTimeout, 10 * time.Minute}[w.r.IntN(3)])
	}
}

// order carries out a command. The product may refuse it.
func (w *world) order(name string, command func() ([]updater.Change, error)) {
	changes, err := command()
	w.logf("operator: %s: %v", name, err)
	if err == nil {
		w.faults["command "+name]++
		w.commit(changes)
	}
}

// pause stops updates from starting, for a while or until resume.
func (w *world) pause() {
	w.order("pause", func() ([]updater.Change, error) {
		if w.r.IntN(2) == 0 {
			return []updater.Change{updater.Put(keys.Pause, record.Pause{})}, nil
		}
		until := w.operatorTime().Add(w.between(0, 2*time.Minute))
		return []updater.Change{updater.Put(keys.Pause, record.Pause{Until: &until})}, nil
	})
}

// ask requests a version that is older or newer than the current one.
func (w *world) ask(s decide.Snapshot) {
	to := "1.0-" + strconv.Itoa(w.r.IntN(w.nextRelease))
	back := s.LastVersion() != "" && release.Newer(s.LastVersion(), to)
	name := "update"
	if back {
		name = "downgrade"
		w.downgrades[to] = true
	}
	w.order(name, func() ([]updater.Change, error) {
		return []updater.Change{updater.Put(keys.Target, record.Target{Version: to, Sums: w.current(to).sums(), Downgrade: back, Passed: s.Release})}, nil
	})
}

// configure sets the configuration. The leader finds another environment's release only at its next lookup.
func (w *world) configure(env string, timeout time.Duration) {
	was := w.store.config()
	w.logf("operator: env %s, worker-timeout %s", env, timeout)
	changes := []updater.Change{updater.Put(keys.Config("all"), record.Config{Env: env, WorkerTimeout: timeout, SurveyInterval: simSurvey, MaxCheckAge: simMaxCheckAge, GitHubRepository: simRepository(w.blind), Repair: []string{record.RepairAsk, record.RepairAuto}[w.r.IntN(2)]})}
	known := w.store.values[keys.Release]
	if env != was.Env {
		changes = append(changes, updater.Remove(keys.Release))
		w.after(w.between(0, 5*time.Second), func() { w.find(known) })
	}
	w.commit(changes)
}

// find lets the leader check for releases.
func (w *world) find(known any) {
	if known != nil && w.store.values[keys.Release] == nil && w.store.config().Env != record.EnvNone {
		w.commit([]updater.Change{updater.Put(keys.Release, "1.0-"+strconv.Itoa(w.nextRelease-1))})
	}
}

// unregisterDead removes dead servers.
func (w *world) unregisterDead() {
	for _, h := range w.servers {
		if h.dead && w.registered(h.lrn) {
			w.unregister(h)
		}
	}
}

// unregister removes a server, dead or not.
func (w *world) unregister(h *host) {
	w.logf("operator: bootserver remove %d", h.lrn)
	w.commit(decide.Unregister(w.store.snapshot(""), h.lrn))
}

// register adds a living server to the fleet or removes it.
func (w *world) register() {
	h := w.servers[w.r.IntN(len(w.servers))]
	switch {
	case h.dead:
	case !w.registered(h.lrn):
		w.faults["server registered again"]++
		w.logf("operator: bootserver add %d", h.lrn)
		w.commit([]updater.Change{updater.Put(keys.BootServer(h.lrn), struct{}{})})
	case w.living() > 1:
		w.faults["server unregistered that lives"]++
		w.unregister(h)
	}
}

// living counts the registered servers that are alive.
func (w *world) living() (n int) {
	for _, h := range w.servers {
		if !h.dead && w.registered(h.lrn) {
			n++
		}
	}
	return n
}

// settle ends the faults. All servers that are not permanently dead start again, a release is published, and
// an operator handles stopped updates.
func (w *world) settle() {
	w.calm = true
	w.logf("calm")
	for _, h := range w.servers {
		w.heal(h)
		if !h.dead && !h.worker.up {
			w.startWorker(h)
		}
		if !h.dead && !h.updater.up {
			w.startUpdater(h)
		}
	}
	w.order("resume", func() ([]updater.Change, error) { return []updater.Change{updater.Remove(keys.Pause)}, nil })
	w.configure(record.EnvProduction, simTimeout)
	w.publish()
	w.after(20*time.Second, w.care)
}

// care does what the documentation tells operators to do.
func (w *world) care() {
	w.unregisterDead()
	s := w.store.snapshot("")
	if s.Current != nil && s.Current.Stop {
		w.orderOneOf(s)
	}
	w.after(20*time.Second, w.care)
}

// orderOneOf runs one of the commands that the documentation offers for a stopped request.
func (w *world) orderOneOf(s decide.Snapshot) {
	switch gone := slices.ContainsFunc(s.Current.Servers, func(lrn int) bool { return !w.registered(lrn) }); {
	case gone && w.r.IntN(2) == 0:
		i := slices.IndexFunc(w.servers, func(h *host) bool { return !h.dead })
		w.stopUpdater(w.servers[i])
		w.startUpdater(w.servers[i])
	case gone || w.r.IntN(2) == 0:
		w.order("recover", func() ([]updater.Change, error) { return decide.Recover(s, w.now, "operator") })
	default:
		w.order("retry", func() ([]updater.Change, error) { return decide.Retry(s, w.now, "") })
	}
}

package rack

import (
	"fmt"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// status contains the states in the output of juju status.
type status struct {
	Machines map[string]struct {
		State string
		Agent string `yaml:"agent-version"`
	}
	Services map[string]struct {
		Units map[string]struct{ State, Machine string }
	}
}

// status runs juju status.
func (w *world) status() (s status, err error) {
	out, err := w.hosts[0].Shell("juju status --format yaml 2>/dev/null")
	if err == nil {
		err = yaml.Unmarshal([]byte(out), &s)
	}
	return s, err
}

// untrue returns "" if the given machine and its units are down, and no others. Otherwise it returns the
// status. If the machine is "", none may be down.
func (w *world) untrue(down string) string {
	s, err := w.status()
	if err != nil {
		return err.Error()
	}
	var wrong []string
	for id, m := range s.Machines {
		if want := map[bool]string{true: "down", false: "running"}[id == down]; m.State != want {
			wrong = append(wrong, fmt.Sprintf("machine %s is %s", id, m.State))
		}
	}
	for _, service := range s.Services {
		for name, u := range service.Units {
			if want := map[bool]string{true: "down", false: "started"}[u.Machine == down]; u.State != want {
				wrong = append(wrong, fmt.Sprintf("unit %s is %s", name, u.State))
			}
		}
	}
	return strings.Join(wrong, ", ")
}

const (
	// truthful is the limit that docs/reference/provisioning.md sets for the status, and for another
	// provisioner to lead.
	truthful = 15 * time.Second
	// slack is added to the limit because this machine may be busy. It is one term of a lease.
	slack = 10 * time.Second
)

// tell waits until the status shows that only the given machine is down ("" means none), and prints the time
// that this took.
func (w *world) tell(what, down string) {
	w.t.Helper()
	w.within(what, w.eventually(what, func() string { return w.untrue(down) }))
}

// within prints the duration of a change, and compares it with the promise.
func (w *world) within(what string, took time.Duration) {
	w.t.Helper()
	fmt.Printf("rack: %s: %.1f s\n", what, took.Seconds())
	if took > truthful+slack {
		w.t.Errorf("%s: it took %v, want at most %v", what, took, truthful)
	}
}

// agents checks that each machine has one running agent, on its own host.
func (w *world) agents() {
	w.t.Helper()
	for i := range w.hosts {
		// With the brackets pgrep does not find its own shell.
		got := w.on(i, "pgrep -a -f '[m]achine-agent --machine' | grep -o -- '--machine [0-9]*' | sort | tr '\\n' ';'")
		if want := fmt.Sprintf("--machine %d;", i); got != want {
			w.t.Errorf("on %s run the agents %q, want %q", w.hosts[i].Name, got, want)
		}
	}
}

// leadings returns the number of times that the host's provisioner has begun to lead.
func (w *world) leadings(host int) int {
	out, err := w.hosts[host].Shell("journalctl --no-pager -o cat -u 'bijou-*' | grep -c 'provisioner leads'")
	n := 0
	if _, serr := fmt.Sscan(out, &n); serr != nil {
		w.t.Logf("cannot count leaderships on %s: %v %s", w.hosts[host].Name, err, out)
	}
	return n
}

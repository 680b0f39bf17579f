package versions

import (
	"os"
	"path/filepath"
	"testing"

	"bijou/state"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
)

// TestBothRequest runs units of machine 1 under one binary while a provisioner of the other binary leads.
// Each creates subordinates, and removes units, relations and services. Then machine 1 switches too.
func TestBothRequest(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	former, current := Former(t), Current(t)
	for _, c := range []struct{ name, agent, provisioner string }{
		{"a former agent", former, current},
		{"a former provisioner", current, former},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.agent, etcdtest.For(t, etcdtest.Options{}).URL("/requests"), "--provider", "dummy")
			w.addFar()
			w.eventually("machine 1 runs", func() string {
				if w.ran(1) == "" {
					return "it has said no word"
				}
				return ""
			})
			w.stopFar()
			w.juju(c.provisioner, "upgrade-juju", "--allow-downgrade", "--wait", "3m")
			w.current = c.provisioner
			allow := w.refuseTools(w.tools(0))
			w.startFar()
			w.liveAndEnd("first")
			if zero, one := w.ran(0), w.ran(1); zero == one {
				t.Fatalf("both machines run %s", zero)
			}

			allow()
			w.eventually("machine 1 goes over", func() string {
				if zero, one := w.ran(0), w.ran(1); zero != one {
					return "it runs " + one
				}
				return ""
			})
			w.liveAndEnd("second")
		})
	}
}

// liveAndEnd deploys a service to machine 1, with a subordinate, and with a peer on machine 0. It then
// destroys the services, and checks that no record of them is left, not even a request.
func (w *world) liveAndEnd(app string) {
	w.t.Helper()
	logging := filepath.Join(w.dir, "logging-"+app)
	check(w.t, os.MkdirAll(filepath.Join(logging, "hooks"), 0o755))
	check(w.t, os.WriteFile(filepath.Join(logging, "metadata.yaml"), []byte("name: logging-"+app+"\nsummary: s\nsubordinate: true\n"+
		"requires:\n  info: {interface: juju-info, scope: container}\n"), 0o644))
	w.juju(w.current, "deploy", logging)
	w.juju(w.current, "deploy", w.charm, app, "--to", "1")
	w.juju(w.current, "deploy", w.charm, app+"-peer", "--to", "0")
	w.juju(w.current, "add-relation", "logging-"+app+":info", app)
	w.juju(w.current, "add-relation", app+":client", app+"-peer:server")
	w.juju(w.current, "wait", "--timeout", "3m")
	w.view(func(v *state.View) error {
		units, err := v.Units("logging-" + app)
		if err == nil && (len(units) != 1 || units[0].Principal != app+"/0") {
			w.t.Errorf("the subordinates are %+v", units)
		}
		return err
	})

	w.juju(w.current, "destroy-relation", app+":client", app+"-peer:server")
	for _, service := range []string{app, "logging-" + app, app + "-peer"} {
		w.juju(w.current, "destroy-service", service)
	}
	w.eventually("nothing is left", func() (left string) {
		w.view(func(v *state.View) error {
			services, err := v.Services()
			if err != nil || len(services) > 0 {
				left = "there are services"
				return err
			}
			requests, err := v.Requests()
			if len(requests) > 0 {
				left = "there are requests"
			}
			return err
		})
		return left
	})
}

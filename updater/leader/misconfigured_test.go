package leader

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"bijou/state/keyspace"
	"bijou/testscripts/fakes/github"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/updatertest"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// failedLook reads the record of the last failed check for releases.
func (r rig) failedLook() (f record.CheckFailure) {
	err := r.Store.View(r.T.Context(), func(v *keyspace.View) (err error) {
		f, err = keyspace.LoadOrZero[record.CheckFailure](v, keys.CheckFailure)
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return f
}

// TestMisconfiguredSource checks that an invalid configuration of the source counts as a failed check for
// releases. The failure is recorded. After max-check-age it is reported once, and its end is reported once
// too.
func TestMisconfiguredSource(t *testing.T) {
	need.Whole(t)
	updatertest.OverStores(t, func(over *updatertest.Rig) {
		r := rig{over}
		server := github.New()
		defer server.Close()
		box := &inbox{}
		alerts := httptest.NewServer(box)
		defer alerts.Close()
		configure := func(values map[string]string) {
			values["env"] = "production"
			values["github-repository"] = github.Repository
			values["notify.slack"] = alerts.URL + "/slack"
			values["check-update-interval"] = "1s"
			values["max-check-age"] = "2s"
			r.configure(values)
		}

		configure(map[string]string{"github-url": "ftp://nowhere"})
		stop := r.startLeader("tarball")
		r.Eventually("looks that fail", func() bool { return r.failedLook().Tries > 0 })
		if f := r.failedLook(); f.Kind != "misconfigured" || !strings.Contains(f.Message, "github-url cannot be read") {
			t.Errorf("the failure is %+v", f)
		}

		r.Eventually("an alert", func() bool { return len(box.all()) == 1 })
		if got := box.all()[0]; !strings.HasSuffix(got, "; to remove it: neco config unset github-url") {
			t.Errorf("the alert is %q", got)
		}

		// The next leader continues the count, and does not report the failure again.
		stop()
		before := r.failedLook().Tries
		r.startLeader("tarball")
		r.Eventually("looks of the next leader", func() bool { return r.failedLook().Tries > before+1 })
		if got := box.all(); len(got) != 1 {
			t.Errorf("the alerts are %q", got)
		}

		configure(map[string]string{"github-url": server.URL()})
		r.Eventually("the end", func() bool { return r.failedLook().Tries == 0 })
		r.Eventually("its alert", func() bool { return len(box.all()) == 2 })
		if got := fmt.Sprint(box.all()); !strings.Contains(got, "checks for releases succeed again") {
			t.Errorf("the alerts are %s", got)
		}
	})
}

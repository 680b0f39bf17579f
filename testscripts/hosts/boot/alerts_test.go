package boot

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// alerts is a webhook at port 8083 that records each request. It is as slow as real webhooks, so that a test
// can kill a leader before its report is sent.
func alerts() error {
	return http.ListenAndServe(outside+":8083", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		time.Sleep(500 * time.Millisecond)
		if err == nil && r.URL.Path == "/heartbeat" {
			err = line("heartbeats", "%d", time.Now().UnixNano())
		} else if err == nil {
			err = line("alerts", "%s", data)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
}

// alert is an alert that the webhook got.
type alert struct {
	ID, Kind, Version, Message string
	Request                    int
	Servers                    []int
}

// hears configures the webhook on the host outside for alerts, once for all cases.
func (w *world) hears() {
	w.t.Helper()
	w.on(3, "systemctl is-active -q alerts || systemd-run -q --unit=alerts /usr/local/bin/standin alerts")
	w.neco("config set notify.webhook http://" + outside + ":8083/")
}

// heard returns the alerts about updates to that version.
func (w *world) heard(version string) (all []alert) {
	w.t.Helper()
	for text := range strings.Lines(w.on(3, "cat "+logs+"/alerts 2>/dev/null || true")) {
		var a alert
		w.check(json.Unmarshal([]byte(text), &a))
		if a.Version == version {
			all = append(all, a)
		}
	}
	return all
}

// request is an update, as status/current and history/N contain it.
type request struct {
	ID        int
	To        string
	Attempt   int
	Stop      bool
	Repair    bool
	Result    string
	Servers   []int
	Missing   []int
	StartedAt time.Time  `json:"started-at"`
	EndedAt   *time.Time `json:"ended-at"`
}

// reported compares the reports of updates to that version with the history. Each update must have ended once
// with the wanted result. It must have been reported at least once, no matter how often its attempts were
// retried.
func (w *world) reported(version string, results ...string) {
	w.t.Helper()
	var all []request
	w.check(json.Unmarshal([]byte(w.neco("history 0 --format json")), &all))
	var found []string
	kinds := map[int]string{}
	for _, r := range all {
		if r.To == version {
			found = append(found, r.Result)
			kinds[r.ID] = map[string]string{"recovered": "stopped"}[r.Result]
			if kinds[r.ID] == "" {
				kinds[r.ID] = r.Result
			}
		}
	}
	if fmt.Sprint(found) != fmt.Sprint(results) {
		w.t.Errorf("the history of %s is %v instead of %v", version, found, results)
	}
	for id, kind := range kinds {
		w.eventually("its report comes: "+kind, func() bool { return w.reports(version, id)[kind] > 0 })
		if said := w.reports(version, id); len(said) != 1 {
			w.t.Errorf("update %d was reported as %v", id, said)
		}
	}
}

// reports counts the reports of an update's end by kind.
func (w *world) reports(version string, id int) map[string]int {
	w.t.Helper()
	kinds := map[string]int{}
	for _, a := range w.heard(version) {
		if a.Request == id && (a.Kind == "succeeded" || a.Kind == "stopped") {
			kinds[a.Kind]++
		}
	}
	return kinds
}

// look reads a key of neco's. It returns false if the key is absent or cannot be read.
func (w *world) look(key string, doc any) bool {
	out, err := w.fleet.Host(3).Shell("standin get " + space + key + " " + strings.Join(members(), " "))
	return err == nil && json.Unmarshal([]byte(out), doc) == nil
}

// leader returns the host whose updater leads.
func (w *world) leader() (host int) {
	w.t.Helper()
	var l leads
	w.eventually("somebody leads", func() bool { return w.look("leader/updater/current", &l) })
	_, err := fmt.Sscanf(l.Host, "h%d", &host)
	w.check(err)
	return host
}

package boot

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// section returns the commands of one section of a page, which are its indented lines.
func section(page, heading string) (lines []string) {
	_, text, _ := strings.Cut(page, "\n## "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			lines = append(lines, strings.TrimSpace(command))
		}
	}
	return lines
}

// TestPage sets up boot servers on bare hosts by the commands of docs/how-to/boot-servers.md, word for word.
// It changes only the addresses and each server's number, and leaves out the alternative store for a single
// machine.
func TestPage(t *testing.T) {
	w := newWorld(t)
	page, err := os.ReadFile("../../../docs/how-to/boot-servers.md")
	w.check(err)
	self, err := os.Executable()
	w.check(err)
	w.put(3, self, "/usr/local/bin/standin")
	w.on(3, "mkdir -p "+logs)
	w.put(3, w.path("etcd-3.6", "etcd"), "/usr/local/bin/etcd")
	w.spawn(3, "etcd --data-dir=/var/lib/etcd --log-level=error --listen-client-urls=http://0.0.0.0:2379 --advertise-client-urls=http://"+outside+":2379", "/var/log/etcd")
	w.spawn(3, "standin alerts", "/var/log/alerts")
	here := strings.NewReplacer(
		"10.0.0.3:2379,10.0.1.3:2379,10.0.2.3:2379", outside+":2379",
		"https://hooks.slack.com/services/...", "http://"+outside+":8083/",
	)
	for host := range 3 {
		w.put(host, w.path("bijou"), "/root/bijou")
		script := []string{"set -e", "cd /root"}
		for _, line := range section(string(page), "Set it up") {
			// The page says of these commands: "Once, from anywhere".
			once := strings.HasPrefix(line, "neco ")
			if strings.Contains(line, "sqlite:") || once && host > 0 {
				continue
			}
			if line == "echo 0 >/etc/neco/rack" {
				line = fmt.Sprintf("echo %d >/etc/neco/rack", host)
			}
			script = append(script, here.Replace(line))
		}
		w.on(host, strings.Join(script, "\n"))
	}
	var s struct {
		Leader  *struct{ Host string }
		Servers []struct {
			LRN               int
			Registered, Alive bool
		}
	}
	w.eventually("all three servers are there, and somebody leads", func() bool {
		out, _ := w.fleet.Host(0).Shell("NECO_STATE=etcd://" + outside + ":2379 neco status --format json")
		s.Leader, s.Servers = nil, nil
		_ = json.Unmarshal([]byte(out), &s)
		there := s.Leader != nil && len(s.Servers) == 3
		for i, server := range s.Servers {
			there = there && server.LRN == i && server.Registered && server.Alive
		}
		return there
	})
	if said := w.on(3, "cat "+logs+"/alerts"); !strings.Contains(said, "a test, sent by root@h0") {
		t.Errorf("the test message of the page has not come: %s", said)
	}
}

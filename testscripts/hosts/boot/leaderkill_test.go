package boot

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// space is the prefix of neco's keys.
const space = "/neco/"

// kv is a key of etcd in the form of its JSON gateway.
type kv struct {
	Key, Value []byte
	Lease      string
}

// leads is the content of the leader's key.
type leads struct {
	Session string
	Host    string
	PID     int
}

// leaderKiller kills the leading updater with SIGKILL, if it is on this host, once in each state that the
// store shows. It then ends the updater's lease, so that a different updater leads at once. It does not test
// the expiry of leases.
type leaderKiller struct {
	member string // of etcd
	host   string
	leader leads
	lease  string
	seen   map[string]bool
	killed string // where the previous leader on this host was killed; "" if another leads
}

// killLeader runs until it is killed, and prints what it does.
func killLeader(member string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	k := &leaderKiller{member: member, host: host, seen: map[string]bool{}}
	for ; ; time.Sleep(20 * time.Millisecond) {
		// watch ends when etcd is restarted.
		_ = k.watch()
	}
}

// watch reads the leader and follows all changes of neco's keys.
func (k *leaderKiller) watch() error {
	var got struct {
		Header struct {
			Revision int64 `json:",string"`
		}
		Kvs []kv
	}
	if err := ask([]string{k.member}, "/v3/kv/range", map[string]any{"key": []byte(space + "leader/updater/current")}, &got); err != nil {
		return err
	}
	for _, kv := range got.Kvs {
		k.leads(kv)
	}
	body, err := json.Marshal(map[string]any{"create_request": map[string]any{
		"key": []byte(space), "range_end": []byte("/neco0"), "start_revision": got.Header.Revision + 1,
	}})
	if err != nil {
		return err
	}
	resp, err := http.Post("http://"+k.member+":2379/v3/watch", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		if err := k.follow(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// follow processes one commit.
func (k *leaderKiller) follow(line []byte) error {
	var said struct {
		Result struct {
			Events []struct {
				Type string
				Kv   kv
			}
		}
	}
	if err := json.Unmarshal(line, &said); err != nil {
		return err
	}
	var states []string
	for _, e := range said.Result.Events {
		key, gone := strings.TrimPrefix(string(e.Kv.Key), space), e.Type == "DELETE"
		if key == "leader/updater/current" {
			if k.leader = (leads{}); !gone {
				k.leads(e.Kv)
			}
		} else if s := state(key, e.Kv.Value, gone); s != "" && !k.seen[s] {
			k.seen[s] = k.killed == ""
			states = append(states, s)
		}
	}
	if len(states) > 0 && k.leader.Host == k.host && k.killed == "" {
		return k.kill(strings.Join(states, " and "))
	}
	return nil
}

// leads processes a change of the leader.
func (k *leaderKiller) leads(kv kv) {
	if json.Unmarshal(kv.Value, &k.leader) != nil {
		return
	}
	if k.lease = kv.Lease; k.killed != "" {
		fmt.Printf("%s -> %s\n", k.killed, k.leader.Host)
		k.killed = ""
	}
}

func (k *leaderKiller) kill(states string) error {
	if err := syscall.Kill(k.leader.PID, syscall.SIGKILL); err != nil {
		return err
	}
	k.killed = states
	var none struct{}
	return ask(members(), "/v3/lease/revoke", map[string]string{"ID": k.lease}, &none)
}

// state returns the leader's state that begins with the given change, or "".
func state(key string, value []byte, gone bool) string {
	report := strings.HasPrefix(key, "outbox/")
	switch {
	case report && gone:
		return "reported"
	case report:
		return "report due"
	case gone:
		return ""
	case key == "info/release":
		return "release known"
	case key == "info/recovery":
		return "recovery asked for"
	case key == "status/gate":
		return gateOf(value)
	case key == "status/current":
		return stateOf(value)
	}
	return ""
}

// gateOf returns the gate that was opened.
func gateOf(value []byte) string {
	var g struct{ Step, Waited int }
	if json.Unmarshal(value, &g) != nil || g.Waited > 0 {
		return ""
	}
	return fmt.Sprintf("gate %d", g.Step)
}

// stateOf returns the state of the request.
func stateOf(value []byte) string {
	var r request
	switch err := json.Unmarshal(value, &r); {
	case err != nil:
		return ""
	case r.Stop:
		return "stopped"
	case r.EndedAt != nil:
		return "succeeded"
	}
	return "requested"
}

package boot

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// standin is the program that runs on the hosts in place of the programs of a data centre.
func standin(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: standin WHAT ARG...")
	}
	what, args := args[0], args[1:]
	switch what {
	case "service":
		return service(args[0])
	case "vault":
		return unseal()
	case "sabakan":
		return sabakan()
	case "releases":
		return releases(args[0])
	case "serf":
		return watchSerf()
	case "probe":
		return probe(args)
	case "load":
		return load(args)
	case "kill":
		return kill(args[0])
	case "kill-leader":
		return killLeader(args[0])
	case "alerts":
		return alerts()
	case "get":
		return get(args[0], args[1:])
	case "compact":
		return compact(args)
	case "lock":
		return lock(args[0])
	}
	return fmt.Errorf("there is no stand-in %q", what)
}

// lock locks a file as dpkg does, until it is killed.
func lock(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}); err != nil {
		return err
	}
	select {}
}

const logs = "/var/log/standin"

// line appends a line to a log.
func line(name, format string, args ...any) error {
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(logs, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, format+"\n", args...)
	return errors.Join(err, f.Close())
}

// tell replaces the number in a file in one step, so that readers never see a part of it.
func tell(name string, n int) error {
	path := filepath.Join(logs, name)
	return errors.Join(os.WriteFile(path+".new", fmt.Append(nil, n), 0o644), os.Rename(path+".new", path))
}

// service runs until it is stopped. It records its version and the times at which it runs, in nanoseconds.
func service(name string) error {
	version, err := os.ReadFile("/opt/" + name + "/version")
	if errors.Is(err, os.ErrNotExist) {
		version, err = []byte("none"), nil
	}
	for err == nil {
		err = line(name, "%s %d", strings.TrimSpace(string(version)), time.Now().UnixNano())
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// unseal reads one key from stdin, as `vault operator unseal` does.
func unseal() error {
	if out, err := os.ReadFile("/proc/self/cmdline"); err == nil && bytes.Contains(out, []byte("key")) {
		return errors.New("a key is in argv")
	}
	key, err := io.ReadAll(os.Stdin)
	if err != nil || !strings.HasPrefix(string(key), "key-") {
		return fmt.Errorf("no key came: %v", err)
	}
	return line("unsealed", "%s", strings.TrimSpace(string(key)))
}

// sabakan is the part of sabakan's API that the updater needs.
func sabakan() error {
	var mu sync.Mutex
	held := map[string]int{}
	return http.ListenAndServe("127.0.0.1:10080", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.URL.Path == "/health":
		case r.Method == http.MethodPut:
			n, _ := io.Copy(io.Discard, r.Body)
			held[r.URL.Path] = int(n)
			_ = line("sabakan", "%s %d", r.URL.Path, n)
			w.WriteHeader(http.StatusCreated)
		default:
			ids := []string{}
			for path := range held {
				if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(r.URL.Path, "/meta")); ok {
					ids = append(ids, strings.Trim(rest, "/"))
				}
			}
			if len(ids) == 0 {
				http.NotFound(w, r)
				return
			}
			_ = json.NewEncoder(w).Encode(ids)
		}
	}))
}

// probe sends a request to all members of etcd ten times a second, and records each time when fewer than two
// of three answer.
func probe(members []string) error {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for n := 0; ; n++ {
		var mu sync.Mutex
		var asking sync.WaitGroup
		var down []string
		for _, m := range members {
			asking.Go(func() {
				resp, err := client.Get("http://" + m + ":2379/health?serializable=true")
				if err == nil {
					_ = resp.Body.Close()
				}
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					down = append(down, m+": "+err.Error())
				}
			})
		}
		asking.Wait()
		if len(down) > 1 {
			if err := line("outages", "%s %v", time.Now().Format(time.RFC3339Nano), down); err != nil {
				return err
			}
		}
		if err := tell("probes", n); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// ask calls the JSON gateway of any member of etcd that answers.
func ask(members []string, path string, question, answer any) error {
	body, err := json.Marshal(question)
	for _, m := range members {
		client := &http.Client{Timeout: 3 * time.Second}
		var resp *http.Response
		if resp, err = client.Post("http://"+m+":2379"+path, "application/json", bytes.NewReader(body)); err != nil {
			continue
		}
		var data []byte
		data, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", resp.Status, data)
		}
		if err == nil {
			return json.Unmarshal(data, answer)
		}
	}
	return err
}

// load writes increasing numbers to etcd until it is killed. It records each acknowledged number, and checks
// that etcd still has the previous one.
func load(members []string) error {
	key := base64.StdEncoding.EncodeToString([]byte("/load"))
	last := ""
	for n := 1; ; n++ {
		var got struct{ Kvs []struct{ Value string } }
		if err := ask(members, "/v3/kv/range", map[string]any{"key": key}, &got); err == nil && last != "" {
			if len(got.Kvs) != 1 || got.Kvs[0].Value < last {
				_ = line("lost", "%v instead of %s", got.Kvs, last)
			}
		}

		value := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%09d", n))
		if written, err := write(members, key, value, last == ""); err != nil || !written {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		last = value
		if err := tell("load", n); err != nil {
			return err
		}
	}
}

// write writes a value. Except for the first value, it writes only if the existing value is lower. A member
// that was cut off may get a request long after its sender has given up, and that request must not restore an
// old value.
func write(members []string, key, value string, first bool) (written bool, err error) {
	put := map[string]string{"key": key, "value": value}
	if first {
		var done struct{}
		err := ask(members, "/v3/kv/put", put, &done)
		return err == nil, err
	}

	var done struct{ Succeeded bool }
	err = ask(members, "/v3/kv/txn", map[string]any{
		"compare": []any{map[string]string{"key": key, "target": "VALUE", "result": "LESS", "value": value}},
		"success": []any{map[string]any{"request_put": put}},
	}, &done)
	return done.Succeeded, err
}

// compact deletes etcd's history and defragments each member, one by one.
func compact(members []string) error {
	var now struct{ Header struct{ Revision string } }
	var none struct{}
	if err := ask(members, "/v3/kv/range", map[string]any{"key": "AA==", "count_only": true}, &now); err != nil {
		return err
	}
	if err := ask(members, "/v3/kv/compaction", map[string]any{"revision": now.Header.Revision, "physical": true}, &none); err != nil {
		return err
	}
	for _, m := range members {
		if err := ask([]string{m}, "/v3/maintenance/defragment", struct{}{}, &none); err != nil {
			return err
		}
	}
	return nil
}

// get prints one key of etcd.
func get(key string, members []string) error {
	var got struct{ Kvs []struct{ Value []byte } }
	question := map[string]any{"key": base64.StdEncoding.EncodeToString([]byte(key))}
	if err := ask(members, "/v3/kv/range", question, &got); err != nil {
		return err
	}
	for _, kv := range got.Kvs {
		fmt.Println(string(kv.Value))
	}
	return nil
}

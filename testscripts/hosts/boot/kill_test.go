package boot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// doing is the content of a worker's journal of actions.
type doing struct {
	Request int    `json:"request"`
	Step    int    `json:"step"`
	Name    string `json:"name"`
	Phase   string `json:"phase"`
}

// kill kills the worker of this host with SIGKILL once in each action, as soon as its journal names the
// action, and prints the action.
func kill(journal string) error {
	killed := map[doing]bool{}
	for {
		time.Sleep(time.Millisecond)
		var d doing
		data, err := os.ReadFile(journal)
		if err != nil || json.Unmarshal(data, &d) != nil || d.Phase != "running" || killed[d] {
			continue
		}
		for _, pid := range pidsOf("neco-worker") {
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				killed[d] = true
			}
		}
		if killed[d] {
			fmt.Println(d.Name)
		}
	}
}

// pidsOf returns the processes that were started under that name.
func pidsOf(name string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		argv0, _, _ := bytes.Cut(data, []byte{0})
		if filepath.Base(string(argv0)) == name {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

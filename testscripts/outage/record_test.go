package outage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// event is one line of a recorder's log.
type event struct {
	Event    string // begin, wrote, end; killed: the test has killed whatever ran
	Hook     string
	PID      int
	Exit     int
	Client   string
	Unit     string
	Remote   string
	Members  string
	ID       string // the relation's, "server:3"
	Settings map[string]string

	Beat int    // wrote: the number
	IDs  string // wrote: into which relations
}

// kind is what of a relation's life the hook is about: joined, changed, departed,
// broken; "" for hooks of the unit.
func (e event) kind() string {
	if _, kind, ok := strings.Cut(e.Hook, "-relation-"); ok {
		return kind
	}
	return ""
}

// relation is the number behind the name.
func (e event) relation() int { return relationNumber(e.ID) }

func relationNumber(id string) int {
	_, number, _ := strings.Cut(id, ":")
	n, err := strconv.Atoi(number)
	if err != nil {
		return -1
	}
	return n
}

// records are those of all units that are or were, by unit.
func (w *world) records() map[string][]event {
	w.t.Helper()
	all := map[string][]event{}
	logs, err := filepath.Glob(w.machine("units", "*", "recorder.log"))
	check(w.t, err)
	for _, log := range logs {
		all[unitOf(filepath.Base(filepath.Dir(log)))] = readRecord(w.t, log)
	}
	saved, err := filepath.Glob(filepath.Join(w.gone, "*"))
	check(w.t, err)
	for _, log := range saved {
		all[unitOf(filepath.Base(log))] = readRecord(w.t, log)
	}
	return all
}

// unitOf is the unit that a folder is named after.
func unitOf(folder string) string {
	dash := strings.LastIndexByte(folder, '-')
	return folder[:dash] + "/" + folder[dash+1:]
}

// readRecord reads one log; a torn last line is left out.
func readRecord(t *testing.T, path string) []event {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var events []event
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err == nil {
			events = append(events, e)
		}
	}
	return events
}

// run is one hook's run: how it began, what it wrote, how it ended.
type run struct {
	event
	ended bool
	exit  int
	wrote int
	ids   []int
	cut   bool // it was the last before everything was killed: its outcome may not be recorded
}

// failed is true also of a run that was cut off.
func (r run) failed() bool { return !r.ended || r.exit != 0 }

// runs puts a record's lines together. Overlapping runs are a violation.
func runs(events []event) (all []run, wrong []string) {
	open := map[int]int{} // place in all, by process
	for _, e := range events {
		switch i, here := open[e.PID]; {
		case e.Event == "killed":
			open = map[int]int{} // what was open has not ended, and that is no wonder
			if n := len(all); n > 0 {
				all[n-1].cut = true
			}
		case e.Event == "begin":
			for _, other := range open {
				if !all[other].ended {
					wrong = append(wrong, e.Hook+" began beside "+all[other].Hook)
				}
			}
			open = map[int]int{e.PID: len(all)}
			all = append(all, run{event: e})
		case !here:
			wrong = append(wrong, e.Hook+" went on after its successor had begun")
		case e.Event == "wrote":
			all[i].wrote = e.Beat
			for _, id := range strings.Fields(e.IDs) {
				all[i].ids = append(all[i].ids, relationNumber(id))
			}
		default:
			all[i].ended, all[i].exit = true, e.Exit
		}
	}
	return all, wrong
}

package judge

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// These are the kinds of lines.
const (
	Begin = "begin" // the beginning of a hook
	Wrote = "wrote" // a number into relations
	Ended = "end"
	// Lives means that a long hook is still running.
	Lives = "lives"
	// Killed means that everything was killed, including the agent, and that the state has lost what was
	// not on its disk. The result of the last run may not be recorded.
	Killed = "killed"
	// Died means that the unit's agent has died. The line names the hook that was running according to the
	// state, if any.
	Died = "died"
	// Resolved means that the operator has resolved the hook that the line names, so that it counts as done.
	Resolved = "resolved"
)

// Event is one line of a recorder's log.
type Event struct {
	Event    string            `json:"event"`
	Hook     string            `json:"hook"`
	PID      int               `json:"pid"`
	Exit     int               `json:"exit"`
	Client   string            `json:"client"`
	Unit     string            `json:"unit"`
	Remote   string            `json:"remote"`
	Members  string            `json:"members"`
	ID       string            `json:"id"` // the relation's, "server:3"
	Settings map[string]string `json:"settings"`
	Revision int               `json:"revision"` // of the charm

	Left int `json:"left"` // in Lives: the remaining time in tenths of a second

	Host   string `json:"host"`
	Folder string `json:"folder"` // the unit's
	At     int64  `json:"at"`     // microseconds since 1970

	Beat int    `json:"beat"` // in Wrote: the number
	IDs  string `json:"ids"`  // in Wrote: the relations
}

// Kind returns the relation event that the hook is for: joined, changed, departed or broken. It is ""
// for hooks of the unit.
func (e Event) Kind() string {
	if _, kind, ok := strings.Cut(e.Hook, "-relation-"); ok {
		return kind
	}
	return ""
}

// Relation returns the number after the relation's name.
func (e Event) Relation() int { return relationNumber(e.ID) }

func relationNumber(id string) int {
	_, number, _ := strings.Cut(id, ":")
	n, err := strconv.Atoi(number)
	if err != nil {
		return -1
	}
	return n
}

// UnitOf returns the unit that a directory is named after.
func UnitOf(folder string) string {
	dash := strings.LastIndexByte(folder, '-')
	return folder[:dash] + "/" + folder[dash+1:]
}

// ServiceOf returns the service of a unit.
func ServiceOf(unit string) string {
	service, _, _ := strings.Cut(unit, "/")
	return service
}

// Read reads one log. It skips torn lines, and returns nothing if there is no log.
func Read(path string) ([]Event, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var events []Event
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err == nil {
			events = append(events, e)
		}
	}
	return events, err
}

// ReadAll reads the logs that match these patterns, by unit. Either the log or its directory is named after
// the unit. If a unit has two logs, the later one counts, unless it has been removed since it was found.
func ReadAll(patterns ...string) (map[string][]Event, error) {
	all := map[string][]Event{}
	for _, p := range patterns {
		logs, err := filepath.Glob(p)
		if err != nil {
			return nil, err
		}
		for _, log := range logs {
			unit := filepath.Base(log)
			if unit == "recorder.log" {
				unit = filepath.Base(filepath.Dir(log))
			}
			events, err := Read(log)
			if err != nil {
				return nil, err
			}
			if unit = UnitOf(unit); len(events) > 0 || all[unit] == nil {
				all[unit] = events
			}
		}
	}
	return all, nil
}

// Append adds a line to a log.
func Append(path string, e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	// The previous line may be incomplete, so this begins a new line.
	_, err = f.WriteString("\n" + string(line) + "\n")
	return errors.Join(err, f.Close())
}

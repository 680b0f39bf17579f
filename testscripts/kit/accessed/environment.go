package accessed

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"bijou/state"
	"bijou/state/access"
)

// Variable names a directory. If it is set, the agents of a test binary use a store that checks their
// requests with state/access. In the directory they record their refusals and the rights that they used.
const Variable = "BIJOU_TEST_ACCESS"

// These are the prefixes of file names. Each process has its own files, because some processes belong to a
// different user.
const (
	refusedFile = "refused-"
	usedFile    = "used-"
)

// AgentState returns the value of multicall.Options.AgentState for this process. It is nil without
// [Variable].
func AgentState() func(opened *state.State, machine string) *state.State {
	dir := os.Getenv(Variable)
	if dir == "" {
		return nil
	}

	n := &notes{dir: dir, noted: map[string]bool{}}
	return func(opened *state.State, machine string) *state.State {
		s := state.OpenIn(New(opened.Store(), access.Agent(machine), n.report))
		s.SetMetrics(opened.Metrics())
		s.SetDamaged(opened.Damaged())
		return s
	}
}

// notes writes each line once, for all processes of a script.
type notes struct {
	dir string

	mu    sync.Mutex
	noted map[string]bool
}

func (n *notes) report(right access.Right, refusal error) {
	if refusal != nil {
		n.note(refusedFile, refusal.Error())
	} else if right.Pattern != "" {
		n.note(usedFile, string(right.Op)+" "+right.Pattern)
	}
}

func (n *notes) note(file, line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.noted[file+line] {
		return
	}

	n.noted[file+line] = true
	if err := appendLine(filepath.Join(n.dir, file+strconv.Itoa(os.Getpid())), line); err != nil {
		panic(err) // a test that cannot record a refusal must not pass
	}
}

// NoteRefusals returns a function that records a refusal in the directory, where [Refused] finds it.
func NoteRefusals(dir string) func(refusal string) {
	n := &notes{dir: dir, noted: map[string]bool{}}
	return func(refusal string) { n.note(refusedFile, refusal) }
}

// appendLine appends with one write, so that lines of different goroutines do not mix.
func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(line + "\n")
	return err
}

// Refused returns the refusals that agents recorded in the directory, each once, sorted.
func Refused(dir string) ([]string, error) { return readAll(dir, refusedFile) }

// UsedVariable names the file to which [KeepUsed] adds.
const UsedVariable = "BIJOU_TEST_ACCESS_USED"

// KeepUsed adds the used rights that agents recorded in the directory to the file that [UsedVariable]
// names.
func KeepUsed(dir string) error {
	file := os.Getenv(UsedVariable)
	used, err := readAll(dir, usedFile)
	if err != nil || file == "" || len(used) == 0 {
		return err
	}
	return appendLine(file, strings.Join(used, "\n"))
}

// Unused returns the rights of the table that are not in a file of [KeepUsed].
func Unused(file string) (unused []string, err error) {
	used, err := readLines(file)
	if err != nil {
		return nil, err
	}

	for _, r := range access.Rights() {
		if line := string(r.Op) + " " + r.Pattern; !slices.Contains(used, line) {
			unused = append(unused, line)
		}
	}
	return unused, nil
}

func readAll(dir, prefix string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		return nil, err
	}
	return readLines(files...)
}

func readLines(files ...string) ([]string, error) {
	lines := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read what agents noted: %w", err)
		}
		for line := range strings.Lines(string(data)) {
			lines[strings.TrimSpace(line)] = true
		}
	}
	return slices.Sorted(maps.Keys(lines)), nil
}

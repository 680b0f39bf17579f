package charms_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tools are the hook tools that the test binary imitates under their names.
var tools = []string{
	"config-get", "unit-get", "relation-get", "relation-set", "relation-list", "relation-ids",
	"juju-log", "status-set", "open-port", "close-port",
}

// world contains all data of the fake tools. It is stored in a file because each call of a tool is a separate
// process. Writes are visible immediately: the fake tools have no transactions.
type world struct {
	Config    map[string]map[string]any // by service
	Relations map[string]*relation      // by id, "db:0"
	Status    map[string]string         // by unit
	Ports     map[string][]string       // by unit
}

// relation is a relation. It has the same name on both sides.
type relation struct {
	Units    []string
	Settings map[string]map[string]string // by unit
}

func loadWorld(path string) (*world, error) {
	w := &world{Config: map[string]map[string]any{}, Relations: map[string]*relation{}, Status: map[string]string{}, Ports: map[string][]string{}}
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return w, nil
	}
	if err != nil {
		return nil, err
	}
	return w, json.Unmarshal(data, w)
}

func (w *world) save(path string) error {
	data, err := json.MarshalIndent(w, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// playTool runs the test binary as a hook tool.
func playTool(name string, args []string) int {
	path := os.Getenv("TEST_WORLD")
	w, err := loadWorld(path)
	if err == nil {
		var out string
		out, err = w.tool(name, args)
		fmt.Print(out)
	}
	if err == nil {
		err = w.save(path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ERROR", err)
		return 1
	}
	return 0
}

// tool carries out one call of a tool.
func (w *world) tool(name string, args []string) (string, error) {
	unit := os.Getenv("JUJU_UNIT_NAME")
	id, asJSON, args := flags(args)
	switch name {
	case "config-get":
		return w.configGet(strings.Split(unit, "/")[0], asJSON, args)
	case "unit-get":
		return "127.0.0.1\n", nil
	case "juju-log":
	case "status-set":
		w.Status[unit] = strings.Join(args, " ")
	case "open-port":
		if !slices.Contains(w.Ports[unit], args[0]) {
			w.Ports[unit] = append(w.Ports[unit], args[0])
		}
	case "close-port":
		w.Ports[unit] = slices.DeleteFunc(w.Ports[unit], func(p string) bool { return p == args[0] })
	case "relation-ids":
		return w.relationIDs(unit, args[0]), nil
	default:
		return w.relationTool(name, unit, id, asJSON, args)
	}
	return "", nil
}

// flags parses the two options that the charms use. It returns --file unchanged.
func flags(args []string) (id string, asJSON bool, rest []string) {
	id = os.Getenv("JUJU_RELATION_ID")
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-r":
			i++
			id = args[i]
		case "--format=json":
			asJSON = true
		default:
			rest = append(rest, args[i])
		}
	}
	return id, asJSON, rest
}

func (w *world) configGet(service string, asJSON bool, args []string) (string, error) {
	if len(args) == 0 {
		return toJSON(w.Config[service]), nil
	}
	switch v := w.Config[service][args[0]].(type) {
	case nil:
		return "", nil
	case bool:
		return map[bool]string{true: "True\n", false: "False\n"}[v], nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64) + "\n", nil
	default:
		return fmt.Sprintln(v), nil
	}
}

func (w *world) relationIDs(unit, name string) string {
	var ids []string
	for id, rel := range w.Relations {
		if strings.HasPrefix(id, name+":") && slices.Contains(rel.Units, unit) {
			ids = append(ids, id+"\n")
		}
	}
	slices.Sort(ids)
	return strings.Join(ids, "")
}

func (w *world) relationTool(name, unit, id string, asJSON bool, args []string) (string, error) {
	rel, ok := w.Relations[id]
	if !ok {
		return "", fmt.Errorf("relation not found: %q", id)
	}
	switch name {
	case "relation-list":
		members := rel.others(unit)
		if asJSON {
			return toJSON(members), nil
		}
		return strings.Join(append(members, ""), "\n"), nil
	case "relation-set":
		return "", rel.set(unit, args)
	}
	other := os.Getenv("JUJU_REMOTE_UNIT")
	if len(args) > 1 {
		other = args[1]
	}
	values, ok := rel.Settings[other]
	if !ok {
		return "", fmt.Errorf("unknown unit %s", other)
	}
	if args[0] == "-" {
		return toJSON(values), nil
	}
	if values[args[0]] == "" {
		return "", nil
	}
	return values[args[0]] + "\n", nil
}

// set changes settings. With `--file -` it reads lines of the form "KEY: VALUE".
func (r *relation) set(unit string, args []string) error {
	if slices.Equal(args, []string{"--file", "-"}) {
		data, err := os.ReadFile("/dev/stdin")
		if err != nil {
			return err
		}
		key, value, _ := strings.Cut(strings.TrimSpace(string(data)), ": ")
		args = []string{key + "=" + value}
	}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("expected key=value, got %q", arg)
		}
		r.Settings[unit][key] = value
	}
	return nil
}

// others returns the members that the unit sees: the other service's units or, in a peer relation, all
// except itself.
func (r *relation) others(unit string) []string {
	service := filepath.Dir(unit)
	peers := !slices.ContainsFunc(r.Units, func(u string) bool { return filepath.Dir(u) != service })
	others := []string{}
	for _, u := range r.Units {
		if u != unit && (peers || filepath.Dir(u) != service) {
			others = append(others, u)
		}
	}
	slices.Sort(others)
	return others
}

func toJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data) + "\n"
}

package juju

import (
	"bufio"
	"bytes"
	"io"

	"gopkg.in/yaml.v3"

	"bijou/state/sanitize"
	"bijou/state/status"
)

// yamlStream writes mappings entry by entry: yaml keeps all that one call of it prints in memory, many
// times over. What it prints is what one call would print.
type yamlStream struct {
	w   *bufio.Writer
	err error
}

func writeStatusYAML(w io.Writer, s status.Status) error {
	y := &yamlStream{w: bufio.NewWriter(w)}
	writeYAMLMap(y, 0, "machines", s.Machines, y.add)
	writeYAMLMap(y, 0, "services", s.Services, func(depth int, name string, v any) {
		service := v.(status.Service)
		units := service.Units
		service.Units = nil
		y.add(depth, name, service)
		if len(units) > 0 {
			writeYAMLMap(y, depth+1, "units", units, y.add)
		}
	})
	writeYAMLMap(y, 0, "relations", s.Relations, func(depth int, name string, v any) {
		relation := v.(status.Relation)
		ends := relation.Services
		relation.Services = nil
		y.addButLast(depth, name, relation)
		writeYAMLMap(y, depth+1, "services", ends, func(depth int, name string, v any) {
			end := v.(status.RelationEnd)
			units := end.Units
			end.Units = nil
			y.addButLast(depth, name, end)
			writeYAMLMap(y, depth+1, "units", units, y.add)
		})
	})
	if s.Provisioner != nil {
		y.add(0, "provisioner", s.Provisioner)
	}
	if y.err != nil {
		return y.err
	}
	return y.w.Flush()
}

func writeYAMLMap[T any](y *yamlStream, depth int, name string, entries map[string]T, add func(depth int, name string, entry any)) {
	if len(entries) == 0 {
		y.add(depth, name, struct{}{})
		return
	}
	y.writeLines(depth, []byte(name+":\n"))
	for _, key := range yamlOrder(y, entries) {
		add(depth+1, key, entries[key])
	}
}

// yamlOrder returns the keys in the order in which yaml prints them.
func yamlOrder[T any](y *yamlStream, entries map[string]T) []string {
	set := make(map[string]bool, len(entries))
	for key := range entries {
		set[key] = true
	}
	var n yaml.Node
	if err := n.Encode(set); err != nil {
		y.err = err
	}
	keys := make([]string, 0, len(entries))
	for i := 0; i < len(n.Content); i += 2 {
		keys = append(keys, n.Content[i].Value)
	}
	return keys
}

func (y *yamlStream) add(depth int, name string, entry any) {
	y.writeLines(depth, y.encode(name, entry))
}

// addButLast leaves out the entry's last line, an empty mapping that is to be written after it.
func (y *yamlStream) addButLast(depth int, name string, entry any) {
	text := y.encode(name, entry)
	last := bytes.LastIndexByte(bytes.TrimSuffix(text, []byte("\n")), '\n')
	y.writeLines(depth, text[:last+1])
}

func (y *yamlStream) encode(name string, entry any) []byte {
	text, err := sanitize.MarshalYAML(map[string]any{name: entry})
	if err != nil {
		y.err = err
	}
	return text
}

// An empty line, of a text of several lines, is not indented.
func (y *yamlStream) writeLines(depth int, text []byte) {
	indent := bytes.Repeat([]byte("    "), depth)
	for line := range bytes.Lines(text) {
		if len(line) > 1 {
			_, _ = y.w.Write(indent) // a failed write is kept until Flush
		}
		_, _ = y.w.Write(line)
	}
}

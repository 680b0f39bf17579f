package juju

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/osutil"
)

// optionReader reads a service's options in the forms that all commands accept.
type optionReader struct {
	schema  *charm.Config
	service string
	stdin   io.Reader // nil after stdin has been read
}

// newOptionReader returns a reader for the service's options, which a charm with the given schema declares.
func (o *operator) newOptionReader(schema *charm.Config, service string) *optionReader {
	return &optionReader{schema: schema, service: service, stdin: o.streams.In}
}

// readWords reads options from words. Each word is OPTION=VALUE, OPTION=@FILE, or the name of a YAML file of
// options, with "-" for stdin. A word that is the name of an existing file means that file, even if the word
// contains "=". Later words override earlier ones.
func (r *optionReader) readWords(words []string) (map[string]any, error) {
	options := map[string]any{}
	for _, word := range words {
		name, text, hasEquals := strings.Cut(word, "=")
		_, statErr := os.Stat(word)
		if hasEquals && statErr != nil {
			value, err := r.readOption(name, text)
			if err != nil {
				return nil, err
			}
			options[name] = value
			continue
		}

		given, err := r.readYAML(word)
		if err != nil {
			return nil, err
		}
		maps.Copy(options, given)
	}

	return options, nil
}

// readPairs reads options from words that can only be OPTION=VALUE.
func (r *optionReader) readPairs(words []string) (map[string]any, error) {
	pairs, err := parsePairs(words)
	if err != nil {
		return nil, err
	}

	options := map[string]any{}
	// With sorted names, the same words always lead to the same error.
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		value, err := r.readOption(name, pairs[name])
		if err != nil {
			return nil, err
		}
		options[name] = value
	}

	return options, nil
}

// readOption parses text as the value of the named option. If text is @FILE, it parses the file's content, or
// stdin for @-.
func (r *optionReader) readOption(name, text string) (any, error) {
	if path, isFile := strings.CutPrefix(text, "@"); isFile {
		data, err := r.readInput(path, state.MaxSetting)
		if err != nil {
			return nil, fmt.Errorf("cannot read the value of %q: %w", name, err)
		}
		text = string(data)
	}

	return r.schema.ParseText(name, text)
}

// readYAML reads a service's options from a YAML file, or from stdin if path is "-".
func (r *optionReader) readYAML(path string) (map[string]any, error) {
	// A word that is neither OPTION=VALUE nor a file is a mistake in the command line.
	if _, err := os.Stat(path); err != nil && path != "-" {
		return nil, console.Usage(fmt.Errorf("cannot read options: %w", err))
	}
	data, err := r.readInput(path, charm.MaxYAML)
	if err != nil {
		return nil, fmt.Errorf("cannot read options: %w", err)
	}

	given, err := r.schema.ParseYAML(data, r.service)
	if err != nil {
		return nil, fmt.Errorf("cannot read options from %q: %w", path, err)
	}

	return given, nil
}

// readInput reads a file, or stdin if path is "-". It returns an error if there are more than maxSize bytes,
// since the user may name a file that never ends. It returns a usage error if stdin has been read before.
func (r *optionReader) readInput(path string, maxSize int64) ([]byte, error) {
	if path != "-" {
		return readFile(path, maxSize)
	}
	if r.stdin == nil {
		return nil, console.Usage(fmt.Errorf("%q is given twice: stdin can be read only once", path))
	}

	data, err := osutil.ReadAllUpTo(r.stdin, "stdin", maxSize)
	r.stdin = nil
	return data, err
}

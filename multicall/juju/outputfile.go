package juju

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state/osutil"
)

// outputFlag is Juju's flag for commands that print data.
type outputFlag struct {
	Output string `short:"o" placeholder:"FILE" help:"Write to this file instead of stdout, replacing it as a whole."`
}

func (f outputFlag) outputFile() string { return f.Output }

// outputting is a command whose stdout can go to a file.
type outputting interface{ outputFile() string }

// runInto runs the command. If the command names an output file, runInto writes the output to that file once
// the command has ended.
func (o *operator) runInto(command any, run func(binds ...any) error) error {
	c, may := command.(outputting)
	if !may || c.outputFile() == "" {
		return run(o)
	}
	if err := refuseFormat(c.outputFile(), o.args); err != nil {
		return err
	}

	out := o.streams.Out
	var printed bytes.Buffer
	o.streams.Out = &printed
	err := run(o)
	o.streams.Out = out

	if err != nil && printed.Len() == 0 {
		return err
	}

	written := writeOutput(o, c.outputFile(), printed.Bytes())
	return errors.Join(err, written)
}

// refuseFormat returns an error for kubectl's -o FORMAT with a hint that names --format, since Juju's -o
// names a file. It ignores a call with one of kubectl's kinds, since the command has a better hint for that
// call.
func refuseFormat(output string, args []string) error {
	format, _, _ := strings.Cut(output, "=")
	switch format {
	case "json", "yaml":
		// bijou has the same format.
	case "jsonpath", "jsonpath-as-json", "go-template", "custom-columns":
		format = "json"
	case "wide", "name", "table", "tabular":
		format = ""
	default:
		return nil
	}
	if slices.ContainsFunc(args[min(len(args), commandAt(args)+1):], isKind) {
		return nil
	}

	var others []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-o", args[i] == "--output":
			i++
		case !strings.HasPrefix(args[i], "--output=") && !strings.HasPrefix(args[i], "-o"):
			others = append(others, args[i])
		}
	}
	if format != "" {
		others = slices.Insert(others, min(len(others), commandAt(others)+1), "--format="+format)
	}

	err := fmt.Errorf("cannot write to %q: -o needs a file, and this is a format", output)
	return console.Hint(console.Usage(err),
		"juju "+quoteShellWords(others),
		"for a file of that name: -o ./"+quoteShellWords([]string{output}))
}

// writeOutput writes the data to the path of -o. It replaces a regular file by rename, so that no reader ever
// sees half of the data. It writes directly into any other file, such as a pipe or a device. A path that is
// the process's own stdout or stderr stands for that stream.
func writeOutput(o *operator, path string, data []byte) error {
	if err := replaceOrWrite(o, path, data); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}

	return nil
}

// replaceOrWrite does the work of [writeOutput].
func replaceOrWrite(o *operator, path string, data []byte) error {
	info, err := os.Stat(path)
	for _, stream := range []any{o.streams.Out, o.streams.Err} {
		if f, isFile := stream.(*os.File); isFile && err == nil {
			if own, err := f.Stat(); err == nil && os.SameFile(own, info) {
				_, err := f.Write(data)
				return err
			}
		}
	}

	if err == nil && !info.Mode().IsRegular() {
		return writeInPlace(path, data)
	}

	// Replace the target of a symlink, not the symlink.
	return osutil.WriteFile(resolveSymlinks(path), data, 0o666)
}

func writeInPlace(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

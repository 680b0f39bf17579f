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

// outputFlag is Juju's flag --output, for commands that print data.
type outputFlag struct {
	Output string `short:"o" placeholder:"FILE" help:"Write to this file instead of stdout, replacing it as a whole."`
}

// outputFile implements outputting for every command that embeds the flag.
func (f outputFlag) outputFile() string { return f.Output }

// outputting is a command that can write its output to a file.
type outputting interface{ outputFile() string }

// runInto runs the command. If the command names an output file, runInto writes the output to that file once
// the command has ended. It does not write the file if the command fails without output. It returns an error,
// and does not run the command, if refuseFormat takes the file's name for a format.
func (o *operator) runInto(command any, run func(binds ...any) error) error {
	c, canOutput := command.(outputting)
	if !canOutput || c.outputFile() == "" {
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
		// Keep the content of an existing file.
		return err
	}

	writeErr := writeOutput(o, c.outputFile(), printed.Bytes())
	return errors.Join(err, writeErr)
}

// refuseFormat returns an error if output is a format, as for kubectl's -o, since Juju's -o names a file. The
// hints are args without -o, with --format if necessary, and -o with a path to a file of that name. refuseFormat
// returns nil if the words after the command contain one of kubectl's kinds, such as pods, since the command
// itself then has a better hint.
func refuseFormat(output string, args []string) error {
	format, _, _ := strings.Cut(output, "=")
	switch format {
	case "json", "yaml":
		// bijou has the same format.
	case "jsonpath", "jsonpath-as-json", "go-template", "custom-columns":
		format = "json"
	case "wide", "name", "table", "tabular":
		// A table is the default, and needs no --format.
		format = ""
	default:
		return nil
	}
	wordsAfterCommand := args[min(len(args), commandAt(args)+1):]
	if slices.ContainsFunc(wordsAfterCommand, isKind) {
		return nil
	}

	// The first hint is the command line without -o.
	var hinted []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-o", args[i] == "--output":
			// The next word is the value of the option.
			i++
		case !strings.HasPrefix(args[i], "--output=") && !strings.HasPrefix(args[i], "-o"):
			hinted = append(hinted, args[i])
		}
	}
	if format != "" {
		hinted = slices.Insert(hinted, min(len(hinted), commandAt(hinted)+1), "--format="+format)
	}

	err := fmt.Errorf("cannot write to %q: -o needs a file, and %[1]q is a format", output)
	return console.Hint(console.Usage(err),
		"juju "+quoteShellWords(hinted),
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

// replaceOrWrite does the work of [writeOutput]: it writes to the process's own stdout or stderr if path leads
// there, and directly into a pipe or a device. In all other cases it replaces or creates a regular file.
func replaceOrWrite(o *operator, path string, data []byte) error {
	info, err := os.Stat(path)
	exists := err == nil

	for _, stream := range []any{o.streams.Out, o.streams.Err} {
		f, isFile := stream.(*os.File)
		if !exists || !isFile {
			continue
		}
		if streamInfo, err := f.Stat(); err == nil && os.SameFile(streamInfo, info) {
			_, err := f.Write(data)
			return err
		}
	}

	if exists && !info.Mode().IsRegular() {
		return writeInPlace(path, data)
	}

	// Replace the target of a symlink, not the symlink.
	return osutil.WriteFile(resolveSymlinks(path), data, 0o666)
}

// writeInPlace writes the data into an existing file, such as a pipe or a device, without replacing it.
func writeInPlace(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

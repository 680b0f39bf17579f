package juju

import (
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state/charm"
)

type scpCmd struct {
	Recursive bool     `short:"r" help:"Copy directories with their content."`
	Words     []string `arg:"" name:"from to" help:"Files of this host, or UNIT:FILE, or MACHINE:FILE; the last one is the destination."`
	containerFlags
}

// scpValueOptions are the letters of scp(1)'s options that take a value.
const scpValueOptions = "cDFiJloPSX"

// Run copies the files with the program that the machine's provider names. If options of scp other
// than -r and -R are given, it prints that they have no effect.
func (c scpCmd) Run(o *operator) error {
	options, words := cutOptions(trimDashes(c.Words), scpValueOptions)
	isRecursive := func(option []string) bool { return option[0] == "-r" || option[0] == "-R" }
	recursive := c.Recursive || slices.ContainsFunc(options, isRecursive)
	o.noteOptions(slices.DeleteFunc(options, isRecursive))

	if len(words) < 2 {
		return console.Usage(errors.New("cannot copy: no source and destination given"))
	}

	place, files, err := c.readPlaces(o, words)
	if err != nil {
		return err
	}
	access, err := o.findMachineFolder(place)
	if err != nil {
		return hintTarget(place, err)
	}
	if len(access.Copy) == 0 {
		return console.Hint(
			fmt.Errorf("cannot copy: %s", access.NoCopy),
			"use a pipe: juju ssh "+place+" 'cat FILE' >FILE; juju ssh "+place+
				" 'cat >FILE' <FILE; for a directory: tar -c, tar -x",
		)
	}

	args := slices.Clone(access.Copy[1:])
	if recursive {
		args = append(args, "-r")
	}

	args = append(args, "--")
	for _, f := range files {
		if f.remote {
			args = append(args, access.remoteName(f.name))
		} else {
			args = append(args, localName(f.name))
		}
	}

	return o.runForeground(exec.Command(access.Copy[0], args...))
}

// copiedFile is a file on this host or on the machine.
type copiedFile struct {
	name   string
	remote bool
}

// readPlaces returns the unit or machine that the words name, and the files; the last file is the destination. It
// returns an error if the words name no unit or machine, or name more than one, or if a file of this host would be
// copied to this host.
func (c scpCmd) readPlaces(o *operator, words []string) (place string, files []copiedFile, err error) {
	last := len(words) - 1
	place, name, toMachine := o.cutRemote(words[last])
	to := copiedFile{name: words[last]}
	if toMachine {
		to = copiedFile{name: name, remote: true}
	}

	var local []string // files of this host, if the destination is on this host too
	for _, word := range words[:last] {
		source, name, fromMachine := o.cutRemote(word)
		switch {
		case fromMachine && toMachine:
			return "", nil, console.Usage(errors.New("cannot copy from one machine to another: first copy to this host"))
		case !fromMachine && !toMachine:
			local = append(local, word)
		case fromMachine && len(files) > 0 && source != place:
			return "", nil, console.Usage(errors.New("cannot copy from two machines at once"))
		case fromMachine:
			place = source
			files = append(files, copiedFile{name: name, remote: true})
		default:
			files = append(files, copiedFile{name: word})
		}
	}

	if len(local) > 0 {
		err := errors.New("cannot copy: no remote file given: want UNIT:FILE or MACHINE:FILE")
		if len(files) > 0 {
			err = fmt.Errorf("cannot copy %q to %q: both are on this host", local[0], words[last])
		}
		return "", nil, console.Hint(console.Usage(err), hintCopy(words)...)
	}

	return place, append(files, to), nil
}

// hintCopy returns a hint with the leader's unit instead of the application if a word has compose's form
// SERVICE:FILE, and no hint otherwise.
func hintCopy(words []string) (hints []string) {
	var meant []string
	for _, word := range words {
		if app, file, ok := strings.Cut(word, ":"); ok && charm.CheckService(app) == nil {
			word = app + leaderSuffix + ":" + file
		}
		meant = append(meant, word)
	}

	if slices.Equal(meant, words) {
		return nil
	}
	return []string{"for an application's units: juju scp " + quoteShellWords(meant)}
}

// cutRemote splits UNIT:FILE, USER@UNIT:FILE, POD:FILE or MACHINE:FILE. It returns the unit of a pod, and drops the
// user with a note. isRemote is false for any other text, since a colon after any other word belongs to a local
// file's name.
func (o *operator) cutRemote(text string) (place, file string, isRemote bool) {
	place, file, hasColon := strings.Cut(text, ":")
	if !hasColon {
		return place, file, false
	}

	user, target, hasUser := strings.Cut(place, "@")
	switch {
	case !hasUser:
		place = unitOfPod(place)
	case isUnitWord(target) && !strings.Contains(user, "/"):
		// With a slash before the @, the text is the path of a local file.
		place = o.cutUser(place)
	}

	isMachine := place != "" && strings.Trim(place, "0123456789") == ""
	return place, file, isMachine || isUnitWord(place)
}

// localName returns a local file's name in a form such that scp does not mistake the part before a colon for a
// host.
func localName(file string) string {
	if path.IsAbs(file) || strings.HasPrefix(file, ".") {
		return file
	}
	return "./" + file
}

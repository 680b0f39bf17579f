package hookexec

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// explain adds to why a script has failed what is wrong with the line that names its
// interpreter: a shell says of it only that the script, which is there, was not found.
func (o Outcome) explain(s Spec, path string) Outcome {
	if o.Failure == "" || o.Interrupted {
		return o
	}
	name, err := filepath.Rel(s.CharmDir, path)
	line := firstLine(path)
	if err != nil || !strings.HasPrefix(line, "#!") {
		return o
	}
	if strings.HasSuffix(line, "\r") {
		o.Failure += fmt.Sprintf(": the lines of %s end in CRLF, so that it wants the interpreter %q: save it with LF alone", name, line[2:])
	} else if missing := missingInterpreter(strings.Fields(line[2:]), s.Env); missing != "" && (o.Code == 126 || o.Code == 127) {
		o.Failure += fmt.Sprintf(": %s wants the interpreter %s, which is not there", name, missing)
	}
	return o
}

// firstLine is as much of a file's first line as the kernel looks at, without its end.
func firstLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, 255))
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return string(line)
}

// missingInterpreter names the program of those words that is not there: the first, or
// what env is to look for. Empty: none is missing.
func missingInterpreter(words, environment []string) string {
	if len(words) == 0 {
		return ""
	}
	if _, err := os.Stat(words[0]); err != nil {
		return fmt.Sprintf("%q", words[0])
	}
	if filepath.Base(words[0]) != "env" || len(words) < 2 || strings.HasPrefix(words[1], "-") || strings.ContainsAny(words[1], "=/") {
		return ""
	}
	for _, variable := range environment {
		dirs, _ := strings.CutPrefix(variable, "PATH=")
		for _, dir := range filepath.SplitList(dirs) {
			if _, err := os.Stat(filepath.Join(dir, words[1])); err == nil && dirs != variable {
				return ""
			}
		}
	}
	return fmt.Sprintf("%q", words[1])
}

package hookexec

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// explainFailure adds what is wrong with the line that names a script's interpreter: a
// shell says of it only that the script, which exists, was not found.
func (o Outcome) explainFailure(s Spec, path string) Outcome {
	if o.Failure == "" || o.Interrupted {
		return o
	}
	name, err := filepath.Rel(s.CharmDir, path)
	line := readFirstLine(path)
	if err != nil || !strings.HasPrefix(line, "#!") {
		return o
	}
	if strings.HasSuffix(line, "\r") {
		o.Failure += fmt.Sprintf(": the lines of %s end in CRLF, so that it wants the interpreter %q: save it with LF alone", name, line[2:])
	} else if words := strings.Fields(line[2:]); len(words) > 0 && (o.Code == 126 || o.Code == 127) {
		if _, err := os.Stat(words[0]); err != nil { // of what env does not find it says so itself
			o.Failure += fmt.Sprintf(": %s wants the interpreter %q, which is not there", name, words[0])
		}
	}
	return o
}

// readFirstLine reads as much of the line as the kernel does, without its end.
func readFirstLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, 255))
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return string(line)
}

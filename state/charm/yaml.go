package charm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
)

// unmarshal reads one YAML document of bounded size; yaml.v3 itself bounds depth
// and what aliases expand to. A parser that panics on hostile bytes must not
// take an agent with it.
func unmarshal(data []byte, into any) (err error) {
	if len(data) > MaxYAML {
		return fmt.Errorf("too big: %s, at most %s", bytesText(int64(len(data))), bytesText(MaxYAML))
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot parse YAML: %v", p)
		}
	}()
	err = yaml.NewDecoder(bytes.NewReader(data)).Decode(into)
	if errors.Is(err, io.EOF) {
		return nil // an empty document is an empty dictionary
	}
	return oneLine(err)
}

// maxComplaint bounds what is repeated of a parser's complaints, in bytes: hostile
// documents have many, and long ones.
const maxComplaint = 300

// oneLine makes a parser's list of complaints fit into a log line.
func oneLine(err error) error {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return err
	}
	text := strings.Join(wrong.Errors, "; ")
	if len(text) > maxComplaint {
		text = strings.ToValidUTF8(text[:maxComplaint], "") + "..."
	}
	return errors.New(text)
}

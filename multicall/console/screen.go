package console

import (
	"fmt"
	"io"
	"strings"
)

// Screen shows a text that changes: on a terminal each version replaces the one before,
// elsewhere they follow each other. It is for one goroutine.
type Screen struct {
	w      io.Writer
	height int    // lines of the text that stands on the terminal
	last   string // what was shown
	shown  bool
}

// NewScreen returns a screen on that stream.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w} }

// Show shows the text, unless it is what was shown last. Elsewhere than on a terminal the
// separator comes between two texts.
func (s *Screen) Show(text, separator string) error {
	if s.shown && text == s.last {
		return nil
	}
	before := s.shown
	s.shown, s.last = true, text
	if CanRedraw(s.w) {
		return s.redraw(Fit(text, SizeOf(s.w)))
	}
	if before {
		text = separator + text
	}
	_, err := io.WriteString(s.w, text)
	return err
}

// redraw overwrites the last text in one write, so that nothing flickers. Line ends are
// cleared as they are passed.
func (s *Screen) redraw(text string) error {
	var b strings.Builder
	if s.height > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.height)
	}
	b.WriteString("\r" + strings.ReplaceAll(text, "\n", "\x1b[K\n") + "\x1b[J")
	s.height = strings.Count(text, "\n")
	_, err := io.WriteString(s.w, b.String())
	return err
}

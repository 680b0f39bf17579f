// Package console parses flags and writes to the terminal in the same way for every
// applet: `error:` and `hint:` lines, exit codes, colours, tables and progress.
//
// It does not depend on environments or on any applet.
package console

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rivo/uniseg"
	"golang.org/x/term"

	"bijou/state/text"
)

// These are the exit codes of all applets except the hook tools.
const (
	ExitOK      = 0
	ExitFailure = 1   // the command failed
	ExitUsage   = 2   // the arguments were wrong, and the command did nothing
	ExitUnknown = 127 // the applet does not exist; shells use the same code
)

// Streams are an applet's three standard streams. Out carries data only.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// Process returns the streams of this process.
func Process() Streams { return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr} }

// IsTerminal reports whether the stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Confirm prints a question to Err, and reads the answer from In. It adds the question mark. It returns true only
// if the answer is y or yes, in lower or upper case, with a line end.
func Confirm(s Streams, question string) bool {
	fmt.Fprintf(s.Err, "%s? [y/N] ", question)
	answer, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil {
		return false
	}

	word := strings.ToLower(strings.TrimSpace(answer))
	return word == "y" || word == "yes"
}

// CanRedraw reports whether the stream is a terminal that can redraw its lines in place.
func CanRedraw(stream any) bool { return os.Getenv("TERM") != "dumb" && IsTerminal(stream) }

// Size is the size of a terminal in characters.
type Size struct{ Width, Height int }

// SizeOf returns the size of the stream's terminal, or 80 by 24 if the size is unknown.
func SizeOf(stream any) Size {
	// f is nil if the stream is not a file. GetSize then fails, as for a file that is not a terminal.
	f, _ := stream.(*os.File)
	if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
		return Size{Width: w, Height: h}
	}
	return Size{Width: 80, Height: 24}
}

// Fit cuts a text to the size of a terminal. It cuts lines that would wrap. If there are too many lines, it replaces the
// last lines with a note that says how many are missing. Colours take no space, and end where a line is cut.
func Fit(text string, s Size) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	// A terminal with only one row has no room for a note.
	if len(lines) >= s.Height && s.Height > 1 {
		// The line with the number needs a row, and so does the cursor after the text.
		kept := s.Height - 2
		note := fmt.Sprintf("... %d more lines", len(lines)-kept)
		lines = append(lines[:kept:kept], note)
	}

	for i, line := range lines {
		lines[i] = fitLine(line, s.Width)
	}

	return strings.Join(lines, "\n") + "\n"
}

// fitLine cuts a line to width columns. It does not count colours, and ends them where it cuts.
func fitLine(line string, width int) string {
	used := 0
	inColour := false // in the code of a colour, which ends with m
	for i, r := range line {
		runeWidth := uniseg.StringWidth(string(r))
		switch {
		case r == '\x1b':
			inColour = true
		case inColour:
			inColour = r != 'm'
		case used+runeWidth > width:
			if strings.Contains(line, "\x1b") {
				return line[:i] + "\x1b[0m"
			}
			return line[:i]
		default:
			used += runeWidth
		}
	}

	return line
}

// Colour is a colour or style of text on a terminal.
type Colour string

// These are the colours and styles, with their codes in ECMA-48.
const (
	Plain  Colour = "" // none of them
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
	Bold   Colour = "1"
)

// CanColour reports whether output to w can have colours. This is the case if w is a terminal, and NO_COLOR
// (no-color.org) is not set.
func CanColour(w io.Writer) bool { return os.Getenv("NO_COLOR") == "" && CanRedraw(w) }

// Paint wraps a text in a colour.
func Paint(c Colour, text string) string { return "\x1b[" + string(c) + "m" + text + "\x1b[0m" }

const (
	// progressDelay is how long work must last before a bar is shown.
	progressDelay = 400 * time.Millisecond
	// lineInterval is the minimum time between two lines if there is no terminal.
	lineInterval = 5 * time.Second
	// maxBarWidth is the maximum number of characters between the bar's ends.
	maxBarWidth = 40
)

// Progress shows the progress of long work. On a terminal it shows a bar. On other streams it writes a line
// from time to time, if there is progress. It shows nothing for short work. Only one goroutine may use a
// Progress.
type Progress struct {
	w        io.Writer
	now      func() time.Time
	begun    time.Time // when the current work began; zero if there is none
	lastLine time.Time // when the last line was written, if there is no terminal
	lastDone int       // the number of finished steps in that line, or -1 if there is none
	work     string    // the name of the current work
	barShown bool      // whether a bar is on the terminal
}

// NewProgress returns a progress for that stream, usually stderr. now is time.Now, except in tests.
func NewProgress(w io.Writer, now func() time.Time) *Progress { return &Progress{w: w, now: now} }

// At shows that done of total steps of the work are finished. If the stream can redraw its lines, At shows a bar
// once the work has lasted for progressDelay. Otherwise it writes at most one line in each lineInterval. work is the
// name of the work. A different name begins new work. Once all steps are finished, At removes the bar.
func (p *Progress) At(work string, done, total int) {
	now := p.now()
	work = text.Escape(work)
	if p.work != work || p.begun.IsZero() {
		p.End()
		p.work = work
		p.begun = now
		p.lastLine = now
		p.lastDone = -1
	}

	switch {
	case done >= total:
		p.End()
	case CanRedraw(p.w) && now.Sub(p.begun) >= progressDelay:
		p.barShown = true
		io.WriteString(p.w, "\r"+formatBar(work, done, total, SizeOf(p.w).Width)+"\x1b[K")
	case now.Sub(p.lastLine) >= lineInterval && done != p.lastDone:
		p.lastLine = now
		p.lastDone = done
		fmt.Fprintf(p.w, "%s: %d of %d\n", work, done, total)
	}
}

// End removes the bar. It must be called when the work has ended, and before other output.
func (p *Progress) End() {
	if p.barShown {
		io.WriteString(p.w, "\r\x1b[K")
	}
	p.barShown = false
	p.begun = time.Time{} // the next call of At begins new work
}

// formatBar returns a bar such as "units added [#### ] 50 of 100". If there is not enough space for a bar, it
// returns only the words, cut to the width. It leaves the terminal's last column free, since some terminals
// wrap there.
func formatBar(work string, done, total, width int) string {
	left := work + " "
	right := fmt.Sprintf(" %d of %d", done, total)
	const brackets = 2
	const minBarWidth = 5
	room := min(maxBarWidth, width-1-uniseg.StringWidth(left)-len(right)-brackets)
	if room < minBarWidth {
		return fitLine(work+right, max(1, width-1))
	}

	full := room * done / max(1, total)
	return left + "[" + strings.Repeat("#", full) + strings.Repeat(" ", room-full) + "]" + right
}

// Screen shows a text that changes. On a terminal each version replaces the previous one. On other streams
// the versions follow each other. Only one goroutine may use a Screen.
type Screen struct {
	w      io.Writer
	height int    // the number of lines of the text on the terminal
	last   string // the text that was shown last
	shown  bool
}

// NewScreen returns a screen on that stream.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w} }

// Show shows the text, unless the text equals the last text. If the stream can redraw its lines, Show cuts the text to
// the terminal's size. Otherwise it writes the separator between two texts.
func (s *Screen) Show(text, separator string) error {
	if s.shown && text == s.last {
		return nil
	}

	if !s.shown {
		separator = ""
	}
	s.shown = true
	s.last = text
	if CanRedraw(s.w) {
		return s.redraw(Fit(text, SizeOf(s.w)))
	}
	_, err := io.WriteString(s.w, separator+text)
	return err
}

// redraw overwrites the last text in one write, so that nothing flickers. It clears the rest of each line, and the lines
// below the new text.
func (s *Screen) redraw(text string) error {
	var b strings.Builder
	if s.height > 0 {
		// Move the cursor up to the first line of the last text.
		fmt.Fprintf(&b, "\x1b[%dA", s.height)
	}
	b.WriteString("\r" + strings.ReplaceAll(text, "\n", "\x1b[K\n") + "\x1b[J")
	s.height = strings.Count(text, "\n")
	_, err := io.WriteString(s.w, b.String())
	return err
}

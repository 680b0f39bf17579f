// Package console parses flags and writes to the terminal, the same for every
// applet: `error:` and `hint:` lines, exit codes, colour, tables, progress.
//
// It knows nothing of environments or of any applet. multicall and the packages below it import it.
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
)

// The exit codes of every applet but the hook tools.
const (
	ExitOK      = 0
	ExitFailure = 1   // it was tried and failed
	ExitUsage   = 2   // it was asked for wrongly; nothing was tried
	ExitUnknown = 127 // there is no such applet, as shells have it
)

// Streams are an applet's three standard streams. Out carries data only.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// Process returns the streams of this process.
func Process() Streams { return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr} }

// IsTerminal reports whether the stream is a terminal that somebody looks at.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Confirm asks a question on Err, and reads the answer in In; anything but yes is false.
func Confirm(s Streams, question string) bool {
	fmt.Fprintf(s.Err, "%s? [y/N] ", question)
	answer, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil {
		return false
	}

	word := strings.ToLower(strings.TrimSpace(answer))
	return word == "y" || word == "yes"
}

// CanRedraw reports whether the stream can redraw its lines in place: it is a terminal that moves its
// cursor.
func CanRedraw(stream any) bool { return os.Getenv("TERM") != "dumb" && IsTerminal(stream) }

// Size is a terminal's, in characters.
type Size struct{ Width, Height int }

// SizeOf returns the size of the terminal that the stream is; 80 by 24 if it does not say.
func SizeOf(stream any) Size {
	f, _ := stream.(*os.File) // nil has no size
	if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
		return Size{Width: w, Height: h}
	}
	return Size{Width: 80, Height: 24}
}

// Fit cuts a text to the terminal: lines that would be wrapped, and those below its foot,
// which a last line counts. Colours take no room and end with their line.
func Fit(text string, s Size) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) >= s.Height && s.Height > 1 {
		cut := len(lines) - (s.Height - 2)
		lines = append(lines[:s.Height-2:s.Height-2], fmt.Sprintf("... %d lines more", cut))
	}

	for i, line := range lines {
		lines[i] = fitLine(line, s.Width)
	}
	return strings.Join(lines, "\n") + "\n"
}

// fitLine cuts a line to that many columns. It does not count colours, and ends them where it cuts.
func fitLine(line string, width int) string {
	n := 0
	escape := false

	for i, r := range line {
		wide := uniseg.StringWidth(string(r))
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case n+wide > width:
			if strings.Contains(line, "\x1b") {
				return line[:i] + "\x1b[0m"
			}
			return line[:i]
		default:
			n += wide
		}
	}

	return line
}

// Colour is a terminal's way to make a text stand out.
type Colour string

// The colours, as terminals take them (ECMA-48).
const (
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
	Bold   Colour = "1"
)

// CanColour reports whether output to w may have colours: w is a terminal, and NO_COLOR (no-color.org) is
// not set.
func CanColour(w io.Writer) bool { return os.Getenv("NO_COLOR") == "" && CanRedraw(w) }

// Paint wraps a text in a colour.
func Paint(c Colour, text string) string { return "\x1b[" + string(c) + "m" + text + "\x1b[0m" }

const (
	// progressDelay is how long work may take before anything is shown.
	progressDelay = 400 * time.Millisecond
	// lineInterval is the time between two lines where there is no terminal.
	lineInterval = 5 * time.Second
	// maxBarWidth is in characters, between the bar's ends.
	maxBarWidth = 40
)

// Progress shows how far long work is: a bar on a terminal, else a line now and then, if it has gone on.
// Short work is not mentioned. It is for one goroutine.
type Progress struct {
	w        io.Writer
	now      func() time.Time
	begun    time.Time // of what is going on now; zero: nothing is
	lastLine time.Time // the last line elsewhere than on a terminal
	lastDone int       // what it said; -1: nothing
	what     string
	barShown bool // a bar stands on the terminal
}

// NewProgress returns a progress for that stream, usually stderr. Its clock is time.Now, but for tests.
func NewProgress(w io.Writer, now func() time.Time) *Progress { return &Progress{w: w, now: now} }

// At reports that done of total steps of the named work are done. Once all are, it removes the bar.
func (p *Progress) At(what string, done, total int) {
	now := p.now()
	if p.what != what || p.begun.IsZero() {
		p.End()
		p.what = what
		p.begun = now
		p.lastLine = now
		p.lastDone = -1
	}

	switch {
	case done >= total:
		p.End()
	case CanRedraw(p.w) && now.Sub(p.begun) >= progressDelay:
		p.barShown = true
		io.WriteString(p.w, "\r"+formatBar(what, done, total, SizeOf(p.w).Width)+"\x1b[K")
	case now.Sub(p.lastLine) >= lineInterval && done != p.lastDone:
		p.lastLine = now
		p.lastDone = done
		fmt.Fprintf(p.w, "%s: %d of %d\n", what, done, total)
	}
}

// End removes the bar: the work is over, or other output follows.
func (p *Progress) End() {
	if p.barShown {
		io.WriteString(p.w, "\r\x1b[K")
	}
	p.barShown = false
	p.begun = time.Time{}
}

// formatBar returns "units added [####    ] 50 of 100"; without room for a bar the words
// only, cut to the width. A terminal's last column stays free, since some wrap there.
func formatBar(what string, done, total, width int) string {
	left := what + " "
	right := fmt.Sprintf(" %d of %d", done, total)
	room := min(maxBarWidth, width-1-uniseg.StringWidth(left)-len(right)-2)
	if room < 5 {
		return fitLine(what+right, max(1, width-1))
	}

	full := room * done / max(1, total)
	return left + "[" + strings.Repeat("#", full) + strings.Repeat(" ", room-full) + "]" + right
}

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

// Show shows the text, unless it was shown last. Elsewhere than on a terminal it writes the separator
// between two texts.
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

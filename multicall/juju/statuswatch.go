package juju

import (
	"bijou/multicall/console"
	"bijou/state"
)

// watch prints the status again after each change, until the operator interrupts it or
// nobody reads any more. What matches nothing yet may come.
func (c statusCmd) watch(o *operator) error {
	ctx, stop := console.UntilUnread(o.ctx, o.streams.Out)
	defer stop()
	screen := console.NewScreen(o.streams.Out)
	coloured := c.Output == "" && console.CanColour(o.streams.Out)
	return o.openChosen(func(s *state.State) error {
		f := follower{o: o, state: s, settleInterval: settleInterval, scopes: []state.Scope{state.WatchAll()}}
		f.read = func(v *state.View) (func() error, error) {
			status, err := c.readStatus(v)
			if err != nil {
				return nil, err
			}
			text, err := c.render(selectStatus(status, c.Globs).status, coloured)
			return func() error { return c.showStatus(o, screen, string(text)) }, err
		}
		return f.follow(ctx)
	})
}

func (c statusCmd) showStatus(o *operator, screen *console.Screen, text string) error {
	if c.Output != "" {
		return writeOutput(o, c.Output, []byte(text))
	}
	if text == "" {
		text = "nothing there\n"
	}
	return screen.Show(text, c.separator())
}

func (c statusCmd) separator() string {
	switch c.Format {
	case "json":
		return "" // a document is a line
	case "dot":
		return "// ---\n" // a comment in its language
	}
	return "---\n"
}

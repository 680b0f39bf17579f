package dashboard

import (
	"context"
	"fmt"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state/backoff"
)

// Fleet reads the boot servers of the page.
type Fleet struct {
	// Read reads the whole view. revision is the revision of the store that it has read.
	Read func(ctx context.Context) (view FleetView, revision int64, err error)
	// Await blocks until something has changed after the revision.
	Await func(ctx context.Context, revision int64) error
	// Ask returns once the store has answered.
	Ask func(ctx context.Context) error
}

// FleetView is a view of the boot servers at one time.
type FleetView struct {
	State  string // one word
	Colour console.Colour
	Why    string
	Hints  []string    // commands, and when to type them
	Facts  [][2]string // lines of the status, each with its name and its text
	Steps  []string    // the names of the steps of an update
	Tables []FleetTable
	// ChangesAt is when the view changes although no record changes, or zero for never.
	ChangesAt time.Time
}

// FleetTable is a table with its title. In a column STEPS each character is a step of an update.
type FleetTable struct {
	Title string
	Table *console.Table
}

// liveFleet has the rows of the boot servers.
type liveFleet struct {
	*server
	revision  int64     // the revision that the last read has read
	changesAt time.Time // the same as in the FleetView of the last read
}

func (f *liveFleet) close() {}

func (f *liveFleet) ask(ctx context.Context) error { return f.Fleet.Ask(ctx) }

// await blocks until a record has changed since the last read, or until changesAt.
func (f *liveFleet) await(ctx context.Context) error {
	return backoff.Until(ctx, f.changesAt, func(ctx context.Context) error { return f.Fleet.Await(ctx, f.revision) })
}

// read returns all rows of the boot servers. For await, it records the revision, and the time of the
// view's next change.
func (f *liveFleet) read(ctx context.Context) (rows, error) {
	view, revision, err := f.Fleet.Read(ctx)
	if err != nil {
		return nil, err
	}
	f.revision = revision
	f.changesAt = view.ChangesAt
	return f.renderRows(view), nil
}

// renderRows returns all rows of the boot servers' part of the page.
func (f *liveFleet) renderRows(view FleetView) rows {
	rendered := rows{}
	rendered.put("fleet/state", "fleet/summary", "", f.render("fleet-state", map[string]any{
		"View":  view,
		"Class": classOf(view.Colour),
	}))

	for i, fact := range view.Facts {
		id := fmt.Sprintf("fleet/fact/%02d", i)
		rendered.put("fleet/facts", id, id,
			f.render("fact", map[string]any{"ID": id, "Name": fact[0], "Text": fact[1]}))
	}

	for i, table := range view.Tables {
		f.putTable(rendered, i, table, view.Steps)
	}
	return rendered
}

// putTable adds the i-th table to rendered: a row of the page for the table's title and heading, and one for each
// further line of the table. steps has the names of the steps of an update.
func (f *liveFleet) putTable(rendered rows, i int, t FleetTable, steps []string) {
	list := "fleet/" + strings.ReplaceAll(strings.ToLower(t.Title), " ", "-")
	var heading []string
	number := 0
	for colour, cells := range t.Table.All() {
		// The first line is the heading.
		if heading == nil {
			heading = cells
			rendered.put("fleet/tables", list+"-table", fmt.Sprint(i),
				f.render("table", map[string]any{"ID": list, "Title": t.Title, "Heading": heading}))
			continue
		}

		number++
		id := list + "/" + cells[0]
		rendered.put(list, id, fmt.Sprintf("%06d", number), f.render("cells", map[string]any{
			"ID":      id,
			"Class":   classOf(colour),
			"Heading": heading,
			"Cells":   cells,
			"Steps":   steps,
		}))
	}
}

// classOf returns the style for a colour of neco's output, or "" for other colours.
func classOf(colour console.Colour) string {
	return map[console.Colour]string{
		console.Red:    "error",
		console.Yellow: "waiting",
		console.Green:  "active",
	}[colour]
}

// isTime reports whether a cell of a table is a time, for which the page shows the age.
func isTime(cell string) bool {
	_, err := time.Parse(time.RFC3339, cell)
	return err == nil
}

// splitSteps returns the style and the title of each step in a server's bar. Each character of the bar is the
// state of one step. Characters other than #, > and ! have no style. names has the names of the steps.
func splitSteps(bar string, names []string) (steps [][2]string) {
	styles := map[rune]string{'#': "active", '>': "running", '!': "error"}
	for i, sign := range bar {
		title := fmt.Sprint(i + 1)
		if i < len(names) {
			title += " " + names[i]
		}
		steps = append(steps, [2]string{styles[sign], title})
	}

	return steps
}

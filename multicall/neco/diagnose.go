package neco

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state/backupfile"
	"bijou/state/keyspace"
	"bijou/state/text"
	"bijou/updater/record"
)

type diagnoseCmd struct {
	LRN    string `arg:"" optional:"" name:"lrn" help:"The boot server; default: this one, from /etc/neco/rack."`
	Bundle string `placeholder:"FILE" help:"Write the output to a ZIP file, to send to someone who can help, with status, history, audit and longer logs, but without the configuration."`
	Dir    string `default:"/var/lib/neco" placeholder:"DIR" type:"path" help:"Read the worker's files from DIR on this server."`
}

// These are the maximum numbers of lines of each log, on the screen and in a bundle.
const (
	maxShownLines  = 50
	maxBundleLines = 2000
)

// Run prints the store's records about the server. On the server itself, it also examines units, disks and logs.
// With --bundle, it writes the output and further data to a file instead. If the store cannot be read, the
// output has the error in place of the records. Run returns an error for a server that the status does not list,
// unless this host is that server.
func (c diagnoseCmd) Run(o *operator) error {
	lrn, isHere, err := c.chooseServer(o)
	if err != nil {
		return err
	}

	var doc statusDoc
	members := map[string]string{}
	storeErr := o.open(func(k *keyspace.Space) (err error) {
		members = k.Health(o.ctx)
		doc, err = keyspace.Read(o.ctx, k, o.readStatus)
		return err
	})

	isListed := slices.ContainsFunc(doc.Servers, func(s serverDoc) bool { return s.LRN == lrn })
	if storeErr == nil && !isListed && !isHere {
		return console.Hint(fmt.Errorf("boot server %d is not registered", lrn), "neco bootserver list")
	}

	// An error of the store is a part of the diagnosis, and the server itself can still be examined.
	text := fmt.Sprintf("server    %d\nstore     %v\n", lrn, storeErr)
	if storeErr == nil {
		text = c.describeServer(o, doc, lrn)
	}

	text += formatHealth("store", members)
	if isHere {
		local, err := c.inspectLocal(o)
		if err != nil {
			return err
		}
		text += local
	} else {
		text += fmt.Sprintf("\nTo see the units, disks and logs of this server, run neco diagnose on server %d itself.\n", lrn)
	}

	if c.Bundle != "" {
		return c.writeBundle(o, text, doc, isHere)
	}

	return o.print(text)
}

// chooseServer returns the number of the server to diagnose. isHere reports whether this host is that server.
func (c diagnoseCmd) chooseServer(o *operator) (lrn int, isHere bool, err error) {
	own, ownErr := o.parts.Server.LRN()
	if c.LRN != "" {
		lrn, err := record.ParseLRN(c.LRN)
		if err != nil {
			return 0, false, console.Usage(err)
		}
		return lrn, ownErr == nil && own == lrn, nil
	}

	if ownErr != nil {
		return 0, false, console.Hint(console.Usage(errors.New("no boot server given, and this host is not one")),
			"neco diagnose LRN")
	}
	return own, true, nil
}

// describeServer returns the status with only this server and its findings, and the free space on its disks. It shows
// all findings of this server, even if the leader has recorded only some of them. If the status cannot be formatted,
// describeServer returns the error's text.
func (c diagnoseCmd) describeServer(o *operator, doc statusDoc, lrn int) string {
	i := slices.IndexFunc(doc.Servers, func(s serverDoc) bool { return s.LRN == lrn })
	if i < 0 {
		return fmt.Sprintf("server    %d, which is not registered\n", lrn)
	}

	doc.Servers = doc.Servers[i : i+1]
	findings := doc.Findings
	if doc.MoreFindings > 0 {
		findings = doc.allFindings
	}
	isOfOther := func(f record.Finding) bool { return f.Server != lrn }
	doc.Findings = slices.DeleteFunc(slices.Clone(findings), isOfOther)
	doc.MoreFindings = 0

	const coloured = false
	shown, err := statusText{doc: doc, steps: len(o.parts.Manifest.Steps()), now: time.Now()}.render(coloured)
	if err != nil {
		return err.Error() + "\n"
	}

	for _, r := range doc.Servers[0].Room {
		shown += fmt.Sprintf("%-9s %s: %d MiB free for %s\n",
			"space", text.Escape(r.At), r.Free>>20, text.Escape(strings.Join(r.For, ", ")))
	}

	return shown
}

// formatHealth returns a line for each member of the store, with the label and the member's health.
func formatHealth(label string, healths map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(healths)) {
		fmt.Fprintf(&b, "%-9s %s: %s\n", label, name, text.Escape(healths[name]))
	}
	return b.String()
}

// inspectLocal returns the diagnosis of this host, which does not depend on the store.
func (c diagnoseCmd) inspectLocal(o *operator) (string, error) {
	found, err := o.parts.Server.Diagnose(o.ctx, c.Dir, o.parts.Manifest)
	if err != nil {
		return "", err
	}

	table := console.NewTable("HERE", "IS")
	for _, f := range found {
		colour := console.Plain
		if f.Bad {
			colour = console.Red
		}
		table.Add(colour, f.What, f.How)
	}

	var b strings.Builder
	b.WriteString("\n")
	// The file of --bundle has no colours.
	err = table.Write(&b, c.Bundle == "" && console.CanColour(o.streams.Out))
	b.WriteString("\n" + o.parts.Server.Journal(o.ctx, "neco-worker", maxShownLines))
	return b.String(), err
}

// writeBundle writes the report and its data to the new file of --bundle. isHere says that this host is the
// diagnosed server.
func (c diagnoseCmd) writeBundle(o *operator, text string, doc statusDoc, isHere bool) error {
	const force = false
	return backupfile.WriteFile(c.Bundle, force, func(w io.Writer) error {
		z := zip.NewWriter(w)
		err := c.addFiles(o, z, text, doc, isHere)
		return errors.Join(err, z.Close())
	})
}

// addFiles adds the files of the bundle. If the content of a file cannot be read, the file ends with the error.
func (c diagnoseCmd) addFiles(o *operator, z *zip.Writer, text string, doc statusDoc, isHere bool) error {
	add := func(name, text string, readErr error) error {
		// All other files are useful even if this content could not be read.
		if readErr != nil {
			text += fmt.Sprintf("error: %v\n", readErr)
		}
		f, err := z.Create(name)
		if err != nil {
			return err
		}
		_, err = io.WriteString(f, text)
		return err
	}

	if err := add("diagnose.txt", text, nil); err != nil {
		return err
	}

	status, encodeErr := encodeText("json", doc)
	if err := add("status.json", status, encodeErr); err != nil {
		return err
	}

	// N is 0 here, so historyCmd lists all entries.
	lists := map[string]historyCmd{
		"history.json": {Format: "json"},
		"audit.json":   {Format: "json", Audit: true},
	}
	for name, list := range lists {
		var printed strings.Builder
		capturing := *o
		capturing.streams.Out = &printed
		listErr := list.Run(&capturing)
		if err := add(name, printed.String(), listErr); err != nil {
			return err
		}
	}

	if !isHere {
		return nil
	}

	for _, unit := range []string{"neco-worker", "neco-updater"} {
		if err := add(unit+".log", o.parts.Server.Journal(o.ctx, unit, maxBundleLines), nil); err != nil {
			return err
		}
	}

	return nil
}

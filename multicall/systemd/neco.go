package systemd

import (
	"fmt"
	"path/filepath"
	"strings"
)

// NecoOwner is the owner in neco's unit files, where those of an environment have its
// folder.
const NecoOwner = "neco"

// NecoUnits makes the unit files of neco's daemons, which lie in the folder bin.
func NecoUnits(bin string) ([]Unit, error) {
	all, err := parseTemplates(bin)
	if err != nil {
		return nil, err
	}
	var units []Unit
	for _, d := range []struct{ name, does string }{
		{"neco-worker", "brings this boot server to new releases"},
		{"neco-updater", "looks for releases, and leads boot servers to them"},
	} {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, "neco.service", map[string]any{"Mark": madeByPrefix, "Owner": NecoOwner, "Does": d.does, "Program": filepath.Join(bin, d.name)})
		if err != nil {
			return nil, fmt.Errorf("cannot make the unit file of %s: %w", d.name, err)
		}
		units = append(units, Unit{Name: d.name + ".service", Text: text.String()})
	}
	return units, nil
}

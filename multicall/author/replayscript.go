package author

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/txtar"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
	"bijou/state/text"
)

// replay is a hook that has run in a unit, and the unit as it is now: what it met then is not recorded.
type replay struct {
	meta    charm.Meta
	name    string // the unit's
	service string
	series  string // of the service's machines
	unit    status.UnitDetail
	run     status.HookRun
	earlier []status.HookRun
	later   []status.HookRun
	options []optionChange // the last first

	commands strings.Builder
	files    []txtar.File
	stubs    []string // the services that are deployed
}

// optionChange is one that juju config --history prints.
type optionChange struct {
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Options []string  `json:"options"`
}

// script returns the script. It sets up the world before the hook, makes the hook run, and checks the world
// after it.
func (r *replay) script() ([]byte, error) {
	relation, kind := r.relationOfHook()
	event, err := r.eventOf(relation, kind)
	if err != nil {
		return nil, err
	}

	r.writeHead()
	for _, rel := range r.unit.Relations {
		if r.isPeer(rel) {
			continue
		}
		r.deployStub(rel)
	}

	event()
	r.writeEnd()
	return txtar.Format(&txtar.Archive{Comment: []byte(r.commands.String()), Files: r.files}), nil
}

func (r *replay) line(format string, args ...any) { fmt.Fprintf(&r.commands, format+"\n", args...) }

// call writes a command, with its words quoted where the script's language wants it.
func (r *replay) call(words ...string) {
	for i, w := range words {
		words[i] = quoteWord(w)
	}
	r.line("%s", strings.Join(words, " "))
}

// quoteWord quotes a word of one line.
func quoteWord(w string) string {
	if w != "" && !strings.ContainsAny(w, " \t'$#{}&") {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", "''") + "'"
}

// writeHead writes which hook the script replays, and what has changed since the hook ran.
func (r *replay) writeHead() {
	outcome := "was done"
	if r.run.Failure != "" {
		outcome = "failed: " + text.Escape(text.FirstLine(r.run.Failure))
	}
	r.line("# Hook %s of %s, number %d, %s %s.", r.hookAndRemote(), r.name, r.run.Number,
		r.run.Started.UTC().Format(time.RFC3339), outcome)
	r.line("# It meets the options and settings of the time when this script was made. What is hidden has placeholders.")

	var later, changes []string
	for _, run := range r.later {
		later = append(later, fmt.Sprintf("%s (%d)", run.Hook, run.Number))
		changes = append(changes, run.Changes...)
	}
	if len(later) > 0 {
		r.line("# Since then these have run: %s.", strings.Join(later, ", "))
	}
	for _, change := range changes {
		r.line("# Since then hooks wrote %s", text.Escape(text.FirstLine(change)))
	}

	for _, change := range slices.Backward(r.options) {
		if change.At.After(r.run.Started) {
			r.line("# Since then somebody has set %s.", strings.Join(change.Options, ", "))
		}
	}
	if !r.unit.Leader {
		r.line("# %s does not lead its application; the unit here does.", r.name)
	}
	r.line("")
}

func (r *replay) hookAndRemote() string {
	return strings.TrimSpace(r.run.Hook + " " + r.run.Remote)
}

// settle waits until the hooks that are due have run. The script's own limit is too short for hooks that took
// longer in the unit: a host under load, or one that installs packages.
func (r *replay) settle() {
	took := time.Duration(0)
	for _, run := range slices.Concat(r.earlier, []status.HookRun{r.run}, r.later) {
		took += time.Duration(run.Seconds * float64(time.Second))
	}

	limit := (3 * took).Truncate(time.Minute) + time.Minute
	if 3*took <= settledTimeout {
		r.call("settled")
		return
	}
	r.call("settled", fmt.Sprintf("%dm", limit/time.Minute))
}

// relationHooks are how the names of hooks of relations end.
var relationHooks = []string{"created", "joined", "changed", "departed", "broken"}

// relationOfHook returns the relation of the hook and the end of its name; "" if it is none of a relation. The
// one of a relation that is gone has only names.
func (r *replay) relationOfHook() (relation *status.RelationDetail, kind string) {
	for _, k := range relationHooks {
		endpoint, is := strings.CutSuffix(r.run.Hook, "-relation-"+k)
		if !is {
			continue
		}

		for i, rel := range r.unit.Relations {
			if rel.Endpoint == endpoint && r.run.Relation == fmt.Sprintf("relation-%d", rel.ID) {
				return &r.unit.Relations[i], k
			}
		}

		service, _, _ := strings.Cut(r.run.Remote, "/")
		gone := status.RelationDetail{Endpoint: endpoint, RelatedEndpoint: endpoint, Service: cmp.Or(service, "other")}
		return &gone, k
	}

	return nil, ""
}

// eventOf returns the lines that set up the world and make the hook run in it.
func (r *replay) eventOf(relation *status.RelationDetail, kind string) (event func(), err error) {
	hasStarted := slices.ContainsFunc(r.earlier, func(run status.HookRun) bool { return run.Hook == "start" })
	if len(r.earlier) == 0 && r.run.Number > 1 {
		hasStarted = true // the history does not go back so far
	}

	switch hook := r.run.Hook; {
	case relation != nil && r.isPeer(*relation):
		return func() { r.peerEvent(kind) }, nil
	case relation != nil && !r.isDeclared(relation.Endpoint):
		return nil, fmt.Errorf("the charm in this folder has no relation %q", relation.Endpoint)
	case relation != nil:
		return func() { r.relationEvent(*relation, kind) }, nil
	case hook == "config-changed" && hasStarted:
		return r.configEvent, nil
	case hook == "update-status":
		return r.updateStatusEvent, nil
	case hook == "upgrade-charm":
		return r.upgradeEvent, nil
	case hook == "stop" || hook == "remove":
		return r.removeEvent, nil
	case slices.Contains([]string{"install", "start", "config-changed", "leader-elected"}, hook) || strings.HasSuffix(hook, "-storage-attached"):
		r.unit.Relations = nil // none had begun
		return r.deployEvent, nil
	}

	return nil, errors.New("a script has no command that has such a hook run")
}

func (r *replay) isDeclared(endpoint string) bool {
	_, is := r.meta.Declared[endpoint]
	return is || endpoint == charm.JujuInfo
}

func (r *replay) isPeer(rel status.RelationDetail) bool {
	return r.meta.Declared[rel.Endpoint].Role == charm.Peers
}

// deployStub deploys a stub for the other side, once for each service.
func (r *replay) deployStub(rel status.RelationDetail) {
	if slices.Contains(r.stubs, rel.Service) {
		return
	}

	r.stubs = append(r.stubs, rel.Service)
	words := []string{"stub", rel.Service}
	for _, other := range r.unit.Relations {
		if other.Service == rel.Service {
			words = append(words, r.stubRelation(other)...)
		}
	}
	if !slices.ContainsFunc(r.unit.Relations, func(other status.RelationDetail) bool { return other.Service == rel.Service }) {
		words = append(words, r.stubRelation(rel)...)
	}
	r.call(words...)

	for range len(rel.RelatedUnits) - 1 {
		r.call("juju", "add-unit", rel.Service)
	}
}

// stubRelation returns the arguments of the stub command for the other side of a relation. There are none
// for juju-info, which every service has.
func (r *replay) stubRelation(rel status.RelationDetail) []string {
	own := r.meta.Declared[rel.Endpoint]
	if rel.RelatedEndpoint == charm.JujuInfo || rel.Endpoint == charm.JujuInfo {
		return nil
	}

	role := "provides"
	if own.Role == charm.Provides {
		role = "requires"
	}
	return []string{role, rel.RelatedEndpoint + ":" + own.Interface}
}

// deploy deploys the charm. It sets the options at once, so that the first hooks see them, unless the
// script sets them later.
func (r *replay) deploy(withOptions bool) {
	words := []string{"juju", "deploy", "."}
	if r.service != r.meta.Name {
		words = append(words, r.service)
	}
	if withOptions {
		for _, word := range r.optionWords() {
			words = append(words, "--config", word)
		}
	}
	r.call(words...)
}

// optionsFile has the values of options that do not fit into a line.
const optionsFile = "replay-options.yaml"

// optionWords returns NAME=VALUE for each option that differs from the charm's default, and the name of a
// file for the options whose values do not fit on a line.
func (r *replay) optionWords() (words []string) {
	lines := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(r.unit.Options)) {
		value := placeholder(name, fmt.Sprint(r.unit.Options[name]))
		if isLine(value) && !strings.HasPrefix(value, "@") {
			words = append(words, name+"="+value)
		} else {
			lines[name] = value
		}
	}

	if len(lines) > 0 {
		r.addFile(optionsFile, map[string]any{r.service: lines})
		words = append([]string{optionsFile}, words...)
	}
	return words
}

// addFile adds a YAML file to the script, once.
func (r *replay) addFile(name string, doc any) {
	for _, f := range r.files {
		if f.Name == name {
			return
		}
	}

	data, err := text.MarshalYAML(doc)
	if err != nil {
		return // not with a map of strings
	}
	r.files = append(r.files, txtar.File{Name: name, Data: data})
}

// isLine reports whether a word of a script's line can be that value.
func isLine(value string) bool { return !strings.ContainsAny(value, "\r\n") }

// placeholder returns the value with a fixed word in place of each hidden part.
func placeholder(name, value string) string {
	return strings.ReplaceAll(value, text.Hidden, "hidden-"+name)
}

func (r *replay) relate(rel status.RelationDetail) {
	r.call("juju", "add-relation", r.service+":"+rel.Endpoint, rel.Service+":"+rel.RelatedEndpoint)
}

// prepare deploys the charm and adds its relations, except the relation of the hook.
func (r *replay) prepare(withOptions bool, except *status.RelationDetail) {
	r.deploy(withOptions)
	for _, rel := range r.unit.Relations {
		if r.isPeer(rel) || except != nil && rel.ID == except.ID {
			continue
		}
		r.relate(rel)
	}
	r.addPeers()
	r.settle()

	said := false
	for _, rel := range r.unit.Relations {
		if r.isPeer(rel) || except != nil && rel.ID == except.ID {
			continue
		}
		said = r.say(rel, "app") || said
		said = r.say(rel, "units") || said
	}
	if said {
		r.settle()
	}
}

// addPeers adds as many units as the unit has met peers.
func (r *replay) addPeers() {
	most := 0
	for _, rel := range r.unit.Relations {
		if r.isPeer(rel) {
			most = max(most, len(rel.RelatedUnits))
		}
	}
	for range most {
		r.call("juju", "add-unit", r.service)
	}
}

// isOwnAddress reports whether agents write the setting by themselves.
func isOwnAddress(name string) bool {
	return slices.Contains([]string{"private-address", "public-address", "ingress-address", "egress-subnets"}, name)
}

// say writes the lines by which the other side of the relation writes its settings again: those of the
// application if who is "app", and otherwise those of its units. It reports whether there are any.
func (r *replay) say(rel status.RelationDetail, who string) bool {
	if who == "app" {
		return r.sayAs(rel, byApplication, rel.Service+"/0", rel.AppData)
	}

	names := slices.Sorted(maps.Keys(rel.RelatedUnits))
	if len(names) > 0 && haveSameSettings(rel, names) {
		return r.sayAs(rel, byAllUnits, rel.Service+"/0", rel.RelatedUnits[names[0]].Data)
	}

	said := false
	for i, name := range names {
		unit := fmt.Sprintf("%s/%d", rel.Service, i)
		if r.sayAs(rel, byOneUnit, unit, rel.RelatedUnits[name].Data) {
			said = true
		}
	}
	return said
}

// haveSameSettings reports whether all units have written the same settings.
func haveSameSettings(rel status.RelationDetail, units []string) bool {
	first := ownSettings(rel, units[0])
	for _, unit := range units[1:] {
		if !maps.Equal(ownSettings(rel, unit), first) {
			return false
		}
	}
	return true
}

// ownSettings returns the settings of a unit of the other side, without the addresses that its agent has written.
func ownSettings(rel status.RelationDetail, unit string) map[string]string {
	data := maps.Clone(rel.RelatedUnits[unit].Data)
	maps.DeleteFunc(data, func(name, _ string) bool { return isOwnAddress(name) })
	return data
}

// settingsWriter is who writes the settings of the other side of a relation again. Its text is a part of the
// names of files.
type settingsWriter string

const (
	byApplication settingsWriter = "--app" // the leader, for the application
	byOneUnit     settingsWriter = "unit"  // one unit, for itself
	byAllUnits    settingsWriter = ""      // each unit, with the same settings
)

// sayAs writes the lines by which the other side of a relation writes settings: those of one line as
// arguments, and the others in a file. unit is a unit of that side. It reports whether there are any.
func (r *replay) sayAs(rel status.RelationDetail, as settingsWriter, unit string, data map[string]string) bool {
	pairs := []string{}
	lines := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		value := placeholder(name, data[name])
		switch {
		case isOwnAddress(name):
			// The other side has an address of its own.
		case isLine(value) && isLine(name):
			pairs = append(pairs, name+"="+value)
		default:
			lines[name] = value
		}
	}

	if len(pairs) > 0 && as == byOneUnit {
		r.call(append([]string{"juju", "do", "--unit", unit, "relation-set", "--relation", rel.RelatedEndpoint}, pairs...)...)
	}
	if len(pairs) > 0 && as != byOneUnit {
		words := []string{"stub", "set"}
		if as == byApplication {
			words = append(words, "--app")
		}
		words = append(words, rel.Service, rel.RelatedEndpoint)
		r.call(append(words, pairs...)...)
	}

	if len(lines) > 0 {
		file := strings.Trim(fmt.Sprintf("replay-%s-%s%s.yaml", strings.ReplaceAll(unit, "/", "-"), rel.RelatedEndpoint, as), "-")
		r.addFile(file, lines)
		words := []string{"juju", "do", "--unit", unit, "relation-set", "--relation", rel.RelatedEndpoint, "--file", file}
		if as == byApplication {
			words = append(words, "--app")
		}
		r.call(words...)
	}

	return len(pairs)+len(lines) > 0
}

// deployEvent writes the deployment, which runs the hook.
func (r *replay) deployEvent() {
	r.writeHook()
	r.deploy(true)
}

// configEvent writes a deployment with the charm's defaults, and then the change of options that runs the hook.
func (r *replay) configEvent() {
	r.prepare(false, nil)
	r.writeHook()
	words := r.optionWords()
	if len(words) == 0 {
		r.line("# All options have the charm's defaults: the config-changed of the beginning is the one.")
		return
	}
	if words[0] == optionsFile {
		words = append([]string{"--config"}, words...)
	}
	r.call(append([]string{"juju", "set", r.service}, words...)...)
}

// updateStatusEvent makes update-status run every second, and waits for one.
func (r *replay) updateStatusEvent() {
	r.prepare(true, nil)
	r.writeHook()
	r.call("juju", "set-environment", state.StatusInterval+"=1s")
	r.call("eventually", "30s", "update-status", "juju", "hook-history", r.service+"/0")
}

// upgradeEvent writes an upgrade of the charm to itself.
func (r *replay) upgradeEvent() {
	r.line("# Of the charm that was there before nothing is known: this one is deployed, and upgraded to itself with a file more.")
	r.prepare(true, nil)
	r.writeHook()
	r.call("cp", "metadata.yaml", "replay-upgraded")
	r.call("juju", "upgrade-charm", r.service, "--path", ".")
}

// removeEvent writes the removal of the unit, which runs the hook.
func (r *replay) removeEvent() {
	r.prepare(true, nil)
	r.writeHook()
	r.call("juju", "remove-unit", r.service+"/0")
}

// peerEvent writes the addition or removal of a second unit, which runs the hook of the peer relation.
func (r *replay) peerEvent(kind string) {
	r.prepare(true, nil)
	if kind != "departed" && kind != "broken" {
		r.writeHook()
		r.call("juju", "add-unit", r.service)
		return
	}

	// The one that has left is no longer among the units that there are.
	r.call("juju", "add-unit", r.service)
	r.settle()
	r.writeHook()
	r.call("juju", "remove-unit", r.service+"/1")
}

// relationEvent writes what makes a relation's hook run: it adds the relation, lets the other side write
// settings, or removes it.
func (r *replay) relationEvent(rel status.RelationDetail, kind string) {
	r.deployStub(rel)
	r.prepare(true, &rel)
	switch kind {
	case "created", "joined":
		r.writeHook()
		r.relate(rel)
		return
	case "changed":
		r.changedEvent(rel)
		return
	}

	r.relate(rel)
	r.settle()
	if rel.ID == 0 && len(rel.RelatedUnits) == 0 {
		r.line("# What the other side had said is not known: the relation is gone.")
	}
	app := r.say(rel, "app")
	if r.say(rel, "units") || app {
		r.settle()
	}

	r.writeHook()
	if kind == "departed" && len(rel.RelatedUnits) > 0 {
		r.call("juju", "remove-unit", r.remoteHere(rel))
		return
	}
	r.call("juju", "destroy-relation", r.service+":"+rel.Endpoint, rel.Service+":"+rel.RelatedEndpoint)
}

// changedEvent writes the settings of the other side in two parts. The part that ran the hook comes last: the
// application's settings, or the units'.
func (r *replay) changedEvent(rel status.RelationDetail) {
	first := "app"
	last := "units"
	if isApp := !strings.Contains(r.run.Remote, "/"); isApp {
		first = "units"
		last = "app"
	}

	r.relate(rel)
	r.settle()
	if r.say(rel, first) {
		r.settle()
	}
	r.writeHook()
	if !r.say(rel, last) {
		r.line("# The other side has said nothing else.")
	}
}

// remoteHere returns the unit or application in the script that stands for the hook's remote.
func (r *replay) remoteHere(rel status.RelationDetail) string {
	if !strings.Contains(r.run.Remote, "/") {
		return rel.Service
	}
	names := slices.Sorted(maps.Keys(rel.RelatedUnits))
	return fmt.Sprintf("%s/%d", rel.Service, max(0, slices.Index(names, r.run.Remote)))
}

func (r *replay) writeHook() { r.line("\n# %s", r.hookAndRemote()) }

// writeEnd checks that no unit is in error, that the hook has run, and that the other sides got the same
// settings.
func (r *replay) writeEnd() {
	remove := r.run.Hook == "stop" || r.run.Hook == "remove"
	r.settle()
	r.call("journal", r.service+"/0")
	r.call("stdout", "^"+r.regexpOfRun())

	for _, rel := range r.unit.Relations {
		if r.isPeer(rel) || remove {
			continue
		}
		r.writeSaw(rel, false, rel.LocalUnit.Data)
		if r.unit.Leader {
			r.writeSaw(rel, true, rel.LocalAppData)
		}
	}
}

// isWrittenLater reports whether a later hook has written, or may have written, this setting of the unit or
// its service.
func (r *replay) isWrittenLater(relation int, name string, isApp bool) bool {
	of := r.name
	if isApp {
		of = r.service
	}

	begin := fmt.Sprintf("relation-%d of %s: setting changed: %q=", relation, of, name)
	return slices.ContainsFunc(r.later, func(run status.HookRun) bool {
		return run.More > 0 || slices.ContainsFunc(run.Changes, func(change string) bool { return strings.HasPrefix(change, begin) })
	})
}

// regexpOfRun matches the hook's line of the journal.
func (r *replay) regexpOfRun() string {
	line := r.service + "/0 " + r.run.Hook
	relation, _ := r.relationOfHook()
	if relation != nil && !r.isPeer(*relation) && r.run.Remote != "" {
		line += " " + r.remoteHere(*relation)
	}
	return regexp.QuoteMeta(line)
}

// writeSaw writes the line `stub saw`, which checks that the other side of the relation sees the settings in data.
// isApp says that they are the application's own settings. Addresses, and settings that a later hook has changed,
// are not checked, since they differ in the script. Of a value that the script cannot have, the line has the name
// only.
func (r *replay) writeSaw(rel status.RelationDetail, isApp bool, data map[string]string) {
	var settings []string
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if isOwnAddress(name) || r.isWrittenLater(rel.ID, name, isApp) {
			continue
		}

		value := strings.ReplaceAll(data[name], r.name, r.service+"/0")
		if r.isReproducible(rel, value) {
			settings = append(settings, name+"="+value)
		} else {
			settings = append(settings, name)
		}
	}
	if len(settings) == 0 {
		return
	}

	words := []string{"stub", "saw"}
	if isApp {
		words = append(words, "--app")
	}
	words = append(words, rel.Service, rel.RelatedEndpoint)
	r.call(append(words, settings...)...)
}

// isReproducible reports whether the unit writes the same value in the script: one line, not hidden, without an
// address of the unit.
func (r *replay) isReproducible(rel status.RelationDetail, value string) bool {
	if strings.Contains(value, text.Hidden) || !isLine(value) {
		return false
	}

	for _, address := range []string{r.unit.PublicAddress, rel.LocalUnit.Data["private-address"]} {
		if address != "" && strings.Contains(value, address) {
			return false
		}
	}
	return true
}

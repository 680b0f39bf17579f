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

// replay is a hook that has run in a unit, and the unit's present state. The unit's state when the hook ran is not
// recorded.
type replay struct {
	meta    charm.Meta
	name    string // the unit's name
	service string
	series  string // the series of the service's machines
	unit    status.UnitDetail
	run     status.HookRun
	earlier []status.HookRun
	later   []status.HookRun
	options []optionChange // the latest first

	commands strings.Builder
	files    []txtar.File
	stubs    []string // the services that are deployed as stubs
}

// optionChange is a change of options, as juju config --history prints it.
type optionChange struct {
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Options []string  `json:"options"`
}

// script returns the script. It sets up the world before the hook, makes the hook run, and checks the world
// after it.
func (r *replay) script() ([]byte, error) {
	relation, kind := r.relationOfHook()
	event, err := r.chooseEvent(relation, kind)
	if err != nil {
		return nil, err
	}

	r.writeHead()
	for _, rel := range r.unit.Relations {
		if r.isPeer(rel) {
			continue
		}
		r.addStub(rel)
	}

	event()
	r.writeEnd()
	return txtar.Format(&txtar.Archive{Comment: []byte(r.commands.String()), Files: r.files}), nil
}

func (r *replay) line(format string, args ...any) { fmt.Fprintf(&r.commands, format+"\n", args...) }

// call writes a command. It quotes words if the script's language requires that.
func (r *replay) call(words ...string) {
	for i, w := range words {
		words[i] = quoteWord(w)
	}
	r.line("%s", strings.Join(words, " "))
}

// quoteWord quotes a word that has no line ends, if necessary.
func quoteWord(w string) string {
	if w != "" && !strings.ContainsAny(w, " \t'$#{}&") {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", "''") + "'"
}

// writeHead writes comments about the hook that the script replays, and about changes since the hook ran.
func (r *replay) writeHead() {
	outcome := "succeeded"
	if r.run.Failure != "" {
		outcome = "failed: " + text.Escape(text.FirstLine(r.run.Failure))
	}
	r.line("# Hook %s of %s (number %d) started at %s and %s.", r.hookAndRemote(), r.name, r.run.Number,
		r.run.Started.UTC().Format(time.RFC3339), outcome)
	r.line("# The hook sees the options and settings as they were when this script was written. Placeholders stand for hidden values.")

	var later, changes []string
	for _, run := range r.later {
		later = append(later, fmt.Sprintf("%s (%d)", run.Hook, run.Number))
		changes = append(changes, run.Changes...)
	}
	if len(later) > 0 {
		r.line("# Since this hook, the unit has run: %s.", strings.Join(later, ", "))
	}
	for _, change := range changes {
		r.line("# Since this hook, a hook has made this change: %s", text.Escape(text.FirstLine(change)))
	}

	for _, change := range slices.Backward(r.options) {
		if change.At.After(r.run.Started) {
			r.line("# Since this hook, these options have been set: %s.", strings.Join(change.Options, ", "))
		}
	}
	if !r.unit.Leader {
		r.line("# %s is not the leader of its application, but the unit in this script is.", r.name)
	}
	r.line("")
}

func (r *replay) hookAndRemote() string {
	return strings.TrimSpace(r.run.Hook + " " + r.run.Remote)
}

// settle writes a wait until the hooks that are due have run. The default timeout is too short if the hooks took
// longer in the unit, for example because they install packages.
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

// relationHooks are the endings of the names of relation hooks.
var relationHooks = []string{"created", "joined", "changed", "departed", "broken"}

// relationOfHook returns the relation of the hook, and the ending of the hook's name. They are nil and "" if the
// hook is not a relation hook. If the relation is gone, the result has only the relation's names.
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
		gone := r.lostRelation(endpoint, cmp.Or(service, "other"))
		return &gone, k
	}

	return nil, ""
}

// lostRelation returns a relation with a service that the unit no longer has. It has only names.
func (r *replay) lostRelation(endpoint, service string) status.RelationDetail {
	related := endpoint
	switch {
	case endpoint == charm.JujuInfo:
		related = "host"
	case r.meta.Declared[endpoint].Interface == charm.JujuInfo:
		related = charm.JujuInfo
	}

	return status.RelationDetail{Endpoint: endpoint, RelatedEndpoint: related, Service: service}
}

// chooseEvent returns a function that writes the lines that set up the world and make the hook run in it. For a
// hook of the deployment, it removes the relations of r.unit.
func (r *replay) chooseEvent(relation *status.RelationDetail, kind string) (event func(), err error) {
	hasStarted := slices.ContainsFunc(r.earlier, func(run status.HookRun) bool { return run.Hook == "start" })
	if len(r.earlier) == 0 && r.run.Number > 1 {
		// The history does not go back to the start hook.
		hasStarted = true
	}

	hook := r.run.Hook
	switch {
	case relation != nil && r.isPeer(*relation):
		return func() { r.peerEvent(kind) }, nil
	case relation != nil && !r.isDeclared(relation.Endpoint):
		return nil, fmt.Errorf("the charm in this directory has no relation %q", relation.Endpoint)
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
	case slices.Contains([]string{"install", "start", "config-changed", "leader-elected"}, hook),
		strings.HasSuffix(hook, "-storage-attached"):
		// No relation had begun, except the one that brings a subordinate's unit.
		r.unit.Relations = r.principalRelations()
		return r.deployEvent, nil
	}

	return nil, errors.New("a script cannot make a unit run this hook")
}

func (r *replay) isDeclared(endpoint string) bool {
	_, is := r.meta.Declared[endpoint]
	return is || endpoint == charm.JujuInfo
}

func (r *replay) isPeer(rel status.RelationDetail) bool {
	return r.meta.Declared[rel.Endpoint].Role == charm.Peers
}

// principalRelations returns the relation that brings a subordinate's unit, beside a unit of the principal. It returns
// none for other charms.
func (r *replay) principalRelations() []status.RelationDetail {
	if !r.meta.Subordinate {
		return nil
	}

	principal, _, _ := strings.Cut(r.unit.Principal, "/")
	isHost := func(endpoint string) bool {
		declared := r.meta.Declared[endpoint]
		return declared.Role == charm.Consumes && declared.Scope == charm.Container
	}
	for _, rel := range r.unit.Relations {
		if isHost(rel.Endpoint) && (principal == "" || rel.Service == principal) {
			return []status.RelationDetail{rel}
		}
	}

	for _, endpoint := range slices.Sorted(maps.Keys(r.meta.Declared)) {
		if isHost(endpoint) {
			return []status.RelationDetail{r.lostRelation(endpoint, cmp.Or(principal, "other"))}
		}
	}
	return nil
}

// hostService returns the service whose units come and go together with the service's own units. For a
// subordinate, it is the service of the principal.
func (r *replay) hostService() string {
	for _, rel := range r.principalRelations() {
		return rel.Service
	}
	return r.service
}

// addStub adds the command to deploy a stub for the other side, once for each service.
func (r *replay) addStub(rel status.RelationDetail) {
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

// stubRelation returns the arguments of the stub command for the other side of a relation. There are none if that side
// is juju-info, which every service provides.
func (r *replay) stubRelation(rel status.RelationDetail) []string {
	own := r.meta.Declared[rel.Endpoint]
	switch charm.JujuInfo {
	case rel.RelatedEndpoint:
		return nil
	case rel.Endpoint:
		own = charm.ImpliedRelation()
	}

	role := "provides"
	if own.Role == charm.Provides {
		role = "requires"
	}
	return []string{role, rel.RelatedEndpoint + ":" + own.Interface}
}

// optionTime is when a script sets the charm's options.
type optionTime int

const (
	optionsAtDeploy optionTime = iota // the first hooks see them
	optionsLater                      // by a command of their own
)

// noRelation is given to prepare if the hook is not one of a relation that the script adds later.
var noRelation *status.RelationDetail

// deploy deploys the charm, and sets its options unless the script sets them later.
func (r *replay) deploy(options optionTime) {
	words := []string{"juju", "deploy", "."}
	if r.service != r.meta.Name {
		words = append(words, r.service)
	}
	if options == optionsAtDeploy {
		for _, word := range r.optionWords() {
			words = append(words, "--config", word)
		}
	}
	r.call(words...)
}

// optionsFile has the values of options that do not fit into a line.
const optionsFile = "replay-options.yaml"

// optionWords returns NAME=VALUE for each option that differs from the charm's default. If values do not fit on a
// line, the first word is a file with these options.
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
	// Encoding cannot fail for a map of strings.
	if err != nil {
		return
	}
	r.files = append(r.files, txtar.File{Name: name, Data: data})
}

// isLine reports whether the value fits on one line of a script.
func isLine(value string) bool { return !strings.ContainsAny(value, "\r\n") }

// placeholder returns the value with a fixed word in place of each hidden part.
func placeholder(name, value string) string {
	return strings.ReplaceAll(value, text.Hidden, "hidden-"+name)
}

func (r *replay) relate(rel status.RelationDetail) {
	r.call("juju", "integrate", r.service+":"+rel.Endpoint, rel.Service+":"+rel.RelatedEndpoint)
}

// prepare deploys the charm and adds its relations, except the relation of the hook.
func (r *replay) prepare(options optionTime, except *status.RelationDetail) {
	r.deploy(options)
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
		r.call("juju", "add-unit", r.hostService())
	}
}

// isOwnAddress reports whether the setting is an address that agents write.
func isOwnAddress(name string) bool {
	return slices.Contains([]string{"private-address", "public-address", "ingress-address", "egress-subnets"}, name)
}

// say writes the lines that make the other side of the relation write its settings again. If who is "app", these
// are the application's settings, and otherwise the settings of its units. It reports whether there are any.
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

// settingsWriter is the writer of settings on the other side of a relation. Its text is a part of file names.
type settingsWriter string

const (
	byApplication settingsWriter = "--app" // the leader, for the application
	byOneUnit     settingsWriter = "unit"  // one unit, for itself
	byAllUnits    settingsWriter = ""      // each unit, with the same settings
)

// sayAs writes the lines that make the other side of a relation write settings. Settings of one line are arguments,
// and the others are in a file. unit is a unit of that side. It reports whether there are any.
func (r *replay) sayAs(rel status.RelationDetail, as settingsWriter, unit string, data map[string]string) bool {
	pairs := []string{}
	lines := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		value := placeholder(name, data[name])
		switch {
		case isOwnAddress(name):
			// The stub has its own address.
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
	r.deploy(optionsAtDeploy)
	for _, rel := range r.unit.Relations {
		r.relate(rel)
	}
}

// configEvent writes a deployment with the charm's defaults, and then the change of options that runs the hook.
func (r *replay) configEvent() {
	r.prepare(optionsLater, noRelation)
	r.writeHook()
	words := r.optionWords()
	if len(words) == 0 {
		r.line("# All options have their defaults, so this tests the config-changed hook of the deployment.")
		return
	}
	if words[0] == optionsFile {
		words = append([]string{"--config"}, words...)
	}
	r.call(append([]string{"juju", "set", r.service}, words...)...)
}

// updateStatusEvent makes update-status run every second, and waits for one.
func (r *replay) updateStatusEvent() {
	r.prepare(optionsAtDeploy, noRelation)
	r.writeHook()
	r.call("juju", "set-environment", state.StatusInterval+"=1s")
	r.call("eventually", "30s", "update-status", "juju", "hook-history", r.service+"/0")
}

// upgradeEvent writes an upgrade of the charm to itself.
func (r *replay) upgradeEvent() {
	r.line("# The previous version of the charm is not known. This version is deployed, and then upgraded to a copy of itself with one more file.")
	r.prepare(optionsAtDeploy, noRelation)
	r.writeHook()
	r.call("cp", "metadata.yaml", "replay-upgraded")
	r.call("juju", "refresh", r.service, "--path", ".")
}

// removeEvent writes the removal of the unit, which runs the hook.
func (r *replay) removeEvent() {
	r.prepare(optionsAtDeploy, noRelation)
	r.writeHook()
	r.call("juju", "remove-unit", r.hostService()+"/0")
}

// peerEvent writes the addition or removal of a second unit, which runs the hook of the peer relation.
func (r *replay) peerEvent(kind string) {
	r.prepare(optionsAtDeploy, noRelation)
	if kind != "departed" && kind != "broken" {
		r.writeHook()
		r.call("juju", "add-unit", r.hostService())
		return
	}

	// The unit no longer lists the peer that has left, so the script adds a peer, and then removes it.
	r.call("juju", "add-unit", r.hostService())
	r.settle()
	r.writeHook()
	r.call("juju", "remove-unit", r.hostService()+"/1")
}

// relationEvent writes the lines that make a relation's hook run. They add the relation, let the other side write
// settings, or remove the relation or a unit.
func (r *replay) relationEvent(rel status.RelationDetail, kind string) {
	r.addStub(rel)
	r.prepare(optionsAtDeploy, &rel)
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
		r.line("# The settings of the other application are not known, because the relation has been removed.")
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
	r.call("juju", "remove-relation", r.service+":"+rel.Endpoint, rel.Service+":"+rel.RelatedEndpoint)
}

// changedEvent writes the other side's settings of the application and of its units. The settings that made the hook
// run come last.
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
		r.line("# The other application has written no other settings.")
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
		r.writeSaw(rel, unitSettings, rel.LocalUnit.Data)
		if r.unit.Leader {
			r.writeSaw(rel, appSettings, rel.LocalAppData)
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
	isOfSetting := func(change string) bool { return strings.HasPrefix(change, begin) }
	return slices.ContainsFunc(r.later, func(run status.HookRun) bool {
		return run.More > 0 || slices.ContainsFunc(run.Changes, isOfSetting)
	})
}

// regexpOfRun returns a regular expression that matches the hook's line in the journal.
func (r *replay) regexpOfRun() string {
	line := r.service + "/0 " + r.run.Hook
	relation, _ := r.relationOfHook()
	if relation != nil && !r.isPeer(*relation) && r.run.Remote != "" {
		line += " " + r.remoteHere(*relation)
	}
	return regexp.QuoteMeta(line)
}

// settingOwner says whose settings in a relation are meant.
type settingOwner bool

const (
	unitSettings settingOwner = false
	appSettings  settingOwner = true
)

// writeSaw writes the line `stub saw`, which checks that the other side of the relation sees the settings in data.
// It leaves out addresses, and settings that a later hook has changed, since they differ in the script. If the
// script cannot reproduce a value, the line has only the name.
func (r *replay) writeSaw(rel status.RelationDetail, owner settingOwner, data map[string]string) {
	isApp := owner == appSettings
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

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

// replay is a hook that has run in a unit, and the script that makes the hook run again. The script is based
// on the unit's present state, since the state at the time of the hook is not recorded.
type replay struct {
	meta          charm.Meta
	name          string // the unit's name
	service       string
	series        string            // the series of the service's machines
	unit          status.UnitDetail // the unit's present state
	run           status.HookRun    // the hook to replay
	earlier       []status.HookRun  // the unit's hooks before it
	later         []status.HookRun  // the unit's hooks after it
	optionChanges []optionChange    // the changes of the service's options, the latest first

	commands strings.Builder // the script's commands until now
	files    []txtar.File    // the script's files until now
	stubs    []string        // the services that the script deploys as stubs
}

// optionChange is a change of options, as juju config --history prints it.
type optionChange struct {
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Options []string  `json:"options"`
}

// script returns the script. The script deploys the charm and stubs for its relations, makes the hook run,
// and checks the results. script returns an error if no script can make the hook run.
func (r *replay) script() ([]byte, error) {
	relation, kind := r.relationOfHook()
	// This comes before the stubs, since it can change the unit's relations.
	writeEvent, err := r.chooseEvent(relation, kind)
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

	writeEvent()
	r.writeEnd()
	return txtar.Format(&txtar.Archive{Comment: []byte(r.commands.String()), Files: r.files}), nil
}

// line writes one line of the script.
func (r *replay) line(format string, args ...any) { fmt.Fprintf(&r.commands, format+"\n", args...) }

// call writes a command. It quotes words that the script's language requires to be quoted, and changes them in
// place.
func (r *replay) call(words ...string) {
	for i, w := range words {
		words[i] = quoteWord(w)
	}
	r.line("%s", strings.Join(words, " "))
}

// quoteWord quotes a word for a script, if necessary. The word must not contain line ends.
func quoteWord(w string) string {
	if w != "" && !strings.ContainsAny(w, " \t'$#{}&") {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", "''") + "'"
}

// writeHead writes comments about the hook that the script replays, and about changes since the hook began.
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

	// Write the earliest change first.
	for _, change := range slices.Backward(r.optionChanges) {
		if change.At.After(r.run.Started) {
			r.line("# Since this hook, these options have been set: %s.", strings.Join(change.Options, ", "))
		}
	}
	if !r.unit.Leader {
		r.line("# %s is not the leader of its application, but the unit in this script is.", r.name)
	}
	r.line("")
}

// hookAndRemote returns the hook's name, followed by the remote unit or application of a relation hook.
func (r *replay) hookAndRemote() string {
	return strings.TrimSpace(r.run.Hook + " " + r.run.Remote)
}

// settle writes a command that waits until all due hooks have run. Usually the command has its default
// timeout. If three times the duration of all hooks in the history is longer, for example because they install
// packages, the command gets a timeout of more than that, in whole minutes.
func (r *replay) settle() {
	duration := time.Duration(0)
	for _, run := range slices.Concat(r.earlier, []status.HookRun{r.run}, r.later) {
		duration += time.Duration(run.Seconds * float64(time.Second))
	}

	// The host that runs the script may be slower.
	if 3*duration <= settledTimeout {
		r.call("settled")
		return
	}
	minutes := 3*duration/time.Minute + 1
	r.call("settled", fmt.Sprintf("%dm", minutes))
}

// relationHooks are the endings of the names of relation hooks.
var relationHooks = []string{"created", "joined", "changed", "departed", "broken"}

// relationOfHook returns the relation of the hook, and the hook's kind, which is one of relationHooks. It
// returns nil and "" if the hook is not a relation hook. If the unit no longer has the relation, the result
// contains only the relation's names.
func (r *replay) relationOfHook() (relation *status.RelationDetail, kind string) {
	for _, candidate := range relationHooks {
		endpoint, isOfKind := strings.CutSuffix(r.run.Hook, "-relation-"+candidate)
		if !isOfKind {
			continue
		}

		for i, rel := range r.unit.Relations {
			if rel.Endpoint == endpoint && r.run.Relation == fmt.Sprintf("relation-%d", rel.ID) {
				return &r.unit.Relations[i], candidate
			}
		}

		// The history names no remote unit or service for created and broken.
		service, _, _ := strings.Cut(r.run.Remote, "/")
		lost := r.lostRelation(endpoint, cmp.Or(service, "other"))
		return &lost, candidate
	}

	return nil, ""
}

// lostRelation returns a relation that the unit no longer has, between its endpoint and a service. The result
// contains only names. The name of the service's endpoint is not recorded, so lostRelation chooses one.
func (r *replay) lostRelation(endpoint, service string) status.RelationDetail {
	related := endpoint
	own, isDeclared := r.meta.Declared[endpoint]
	switch {
	case isDeclared && own.Interface == charm.JujuInfo:
		// Every service, and so the stub, provides juju-info without declaring it. A charm can require that under any
		// name, also under this one.
		related = charm.JujuInfo
	case endpoint == charm.JujuInfo:
		// A stub cannot declare an endpoint with the name juju-info, which is reserved.
		related = "host"
	}

	return status.RelationDetail{Endpoint: endpoint, RelatedEndpoint: related, Service: service}
}

// chooseEvent returns a function that writes the lines that deploy the charm and make the hook run. relation
// and kind are those of relationOfHook. For a hook of the deployment, chooseEvent also replaces the relations of
// r.unit with principalRelations. It returns an error if a script cannot make the hook run.
func (r *replay) chooseEvent(relation *status.RelationDetail, kind string) (writeEvent func(), err error) {
	if relation != nil {
		return r.chooseRelationEvent(*relation, kind)
	}

	hasStarted := slices.ContainsFunc(r.earlier, func(run status.HookRun) bool { return run.Hook == "start" })
	if len(r.earlier) == 0 && r.run.Number > 1 {
		// The history does not go back to the start hook.
		hasStarted = true
	}

	hook := r.run.Hook
	switch {
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
		// Hooks of the deployment run before other relations begin. Only a subordinate's unit needs the
		// relation that creates it.
		r.unit.Relations = r.principalRelations()
		return r.deployEvent, nil
	}

	return nil, errors.New("a script cannot make a unit run this hook")
}

// chooseRelationEvent is chooseEvent for a hook of this kind and relation. It returns an error if the charm does not
// have the relation.
func (r *replay) chooseRelationEvent(relation status.RelationDetail, kind string) (writeEvent func(), err error) {
	if r.isPeer(relation) {
		return func() { r.peerEvent(kind) }, nil
	}
	if !r.isDeclared(relation.Endpoint) {
		return nil, fmt.Errorf("the charm in this directory has no relation %q", relation.Endpoint)
	}
	return func() { r.relationEvent(relation, kind) }, nil
}

// isDeclared reports whether the charm has the endpoint. Every charm has juju-info.
func (r *replay) isDeclared(endpoint string) bool {
	_, isInMetadata := r.meta.Declared[endpoint]
	return isInMetadata || endpoint == charm.JujuInfo
}

// isPeer reports whether the relation is a peer relation of the charm.
func (r *replay) isPeer(rel status.RelationDetail) bool {
	return r.meta.Declared[rel.Endpoint].Role == charm.Peers
}

// principalRelations returns the relation of a subordinate with its principal. This relation creates a unit
// of the subordinate for each unit of the principal. If the unit no longer has this relation, the result contains
// only the relation's names. principalRelations returns none for other charms.
func (r *replay) principalRelations() []status.RelationDetail {
	if !r.meta.Subordinate {
		return nil
	}

	principal, _, _ := strings.Cut(r.unit.Principal, "/")
	isWithPrincipal := func(endpoint string) bool {
		declared := r.meta.Declared[endpoint]
		return declared.Role == charm.Consumes && declared.Scope == charm.Container
	}
	for _, rel := range r.unit.Relations {
		if isWithPrincipal(rel.Endpoint) && (principal == "" || rel.Service == principal) {
			return []status.RelationDetail{rel}
		}
	}

	// The unit no longer has the relation.
	for _, endpoint := range slices.Sorted(maps.Keys(r.meta.Declared)) {
		if isWithPrincipal(endpoint) {
			return []status.RelationDetail{r.lostRelation(endpoint, cmp.Or(principal, "other"))}
		}
	}
	return nil
}

// hostService returns the service to which a script must add units, or from which it must remove them, to get
// more or fewer units of the charm. This is the principal's service for a subordinate, and otherwise the
// charm's own service.
func (r *replay) hostService() string {
	for _, rel := range r.principalRelations() {
		return rel.Service
	}
	return r.service
}

// addStub writes the commands that deploy a stub for the other side of a relation, with as many units as that
// side has. The stub has all relations with that side. addStub does nothing if the script already deploys the
// stub.
func (r *replay) addStub(rel status.RelationDetail) {
	if slices.Contains(r.stubs, rel.Service) {
		return
	}

	r.stubs = append(r.stubs, rel.Service)
	words := []string{"stub", rel.Service}
	hasRelation := false
	for _, other := range r.unit.Relations {
		if other.Service == rel.Service {
			words = append(words, r.stubRelation(other)...)
			hasRelation = true
		}
	}
	// The unit may have lost its relation with this service.
	if !hasRelation {
		words = append(words, r.stubRelation(rel)...)
	}
	r.call(words...)

	// The deployment of the stub creates its first unit.
	for range len(rel.RelatedUnits) - 1 {
		r.call("juju", "add-unit", rel.Service)
	}
}

// stubRelation returns the arguments ROLE RELATION:INTERFACE of the stub command for the other side of a
// relation. It returns none if the other side's endpoint is juju-info, which every service provides.
func (r *replay) stubRelation(rel status.RelationDetail) []string {
	if rel.RelatedEndpoint == charm.JujuInfo {
		return nil
	}

	own, isDeclared := r.meta.Declared[rel.Endpoint]
	if !isDeclared {
		own = charm.ImpliedRelation() // juju-info, which every charm has without declaring it
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
	optionsAtDeploy optionTime = iota // when it deploys the charm, so that the first hooks see them
	optionsLater                      // with a separate command, which the caller writes
)

// noRelation is given to prepare if the script adds all relations before the hook.
var noRelation *status.RelationDetail

// deploy writes the command that deploys the charm. Unless the options are set later, the command also sets
// the charm's options.
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

// optionsFile is the script's file with the values of options that cannot be arguments.
const optionsFile = "replay-options.yaml"

// optionWords returns arguments that set the options that operators have set. They are NAME=VALUE or, as the
// first word, optionsFile. optionWords adds this file to the script if there are values that cannot be arguments.
func (r *replay) optionWords() (words []string) {
	inFile := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(r.unit.Options)) {
		value := placeholder(name, fmt.Sprint(r.unit.Options[name]))
		// A value that begins with @ would name a file that contains the value.
		canBeArgument := isLine(value) && !strings.HasPrefix(value, "@")
		if canBeArgument {
			words = append(words, name+"="+value)
		} else {
			inFile[name] = value
		}
	}

	if len(inFile) > 0 {
		r.addFile(optionsFile, map[string]any{r.service: inFile})
		words = append([]string{optionsFile}, words...)
	}
	return words
}

// addFile adds a YAML file to the script, unless the script already has a file of this name.
func (r *replay) addFile(name string, doc any) {
	for _, f := range r.files {
		if f.Name == name {
			return
		}
	}

	data, err := text.MarshalYAML(doc)
	// Encoding cannot fail, since doc contains only maps and strings.
	if err != nil {
		return
	}
	r.files = append(r.files, txtar.File{Name: name, Data: data})
}

// isLine reports whether the value fits on one line of a script.
func isLine(value string) bool { return !strings.ContainsAny(value, "\r\n") }

// placeholder returns the value of the named option or setting. It replaces each hidden part with the word
// hidden-NAME.
func placeholder(name, value string) string {
	return strings.ReplaceAll(value, text.Hidden, "hidden-"+name)
}

// relate writes the command that adds the relation.
func (r *replay) relate(rel status.RelationDetail) {
	r.call("juju", "integrate", r.service+":"+rel.Endpoint, rel.Service+":"+rel.RelatedEndpoint)
}

// prepare writes the commands that deploy the charm, add its relations and peers, write the settings of the
// other sides, and wait for the hooks. It leaves out the relation except, which is the relation of the hook, or
// noRelation.
func (r *replay) prepare(options optionTime, except *status.RelationDetail) {
	var added []status.RelationDetail
	for _, rel := range r.unit.Relations {
		isExcept := except != nil && rel.ID == except.ID
		// A peer relation begins with the deployment.
		if !isExcept && !r.isPeer(rel) {
			added = append(added, rel)
		}
	}

	r.deploy(options)
	for _, rel := range added {
		r.relate(rel)
	}
	r.addPeers()
	r.settle()

	hasSettings := false
	for _, rel := range added {
		hasApp := r.writeSettings(rel, applicationSide)
		hasUnits := r.writeSettings(rel, unitSide)
		hasSettings = hasSettings || hasApp || hasUnits
	}
	if hasSettings {
		r.settle()
	}
}

// addPeers writes the commands that add a unit for each peer that the unit has. If the unit has several peer relations,
// the one with the most peers counts.
func (r *replay) addPeers() {
	peers := 0
	for _, rel := range r.unit.Relations {
		if r.isPeer(rel) {
			peers = max(peers, len(rel.RelatedUnits))
		}
	}
	for range peers {
		r.call("juju", "add-unit", r.hostService())
	}
}

// isOwnAddress reports whether the setting is an address that agents write.
func isOwnAddress(name string) bool {
	return slices.Contains([]string{"private-address", "public-address", "ingress-address", "egress-subnets"}, name)
}

// side is the owner of settings on the other side of a relation: the application there, or its units.
type side string

const (
	applicationSide side = "application"
	unitSide        side = "units"
)

// writeSettings writes the commands with which the stub at the other end of the relation writes the settings
// of that application or its units. It returns false if there are no such settings.
func (r *replay) writeSettings(rel status.RelationDetail, whose side) (hasSettings bool) {
	if whose == applicationSide {
		return r.writeSettingsBy(byApplication, rel, rel.Service+"/0", rel.AppData)
	}

	names := slices.Sorted(maps.Keys(rel.RelatedUnits))
	// One command can write the same settings for all units, but only one unit at a time can read a file.
	if len(names) > 0 && haveSameSettings(rel, names) {
		data := rel.RelatedUnits[names[0]].Data
		_, inFile := splitSettings(data)
		if len(names) == 1 || len(inFile) == 0 {
			return r.writeSettingsBy(byAllUnits, rel, rel.Service+"/0", data)
		}
	}

	// In the script, the stub's units have the numbers 0, 1 and so on.
	for i, name := range names {
		unit := fmt.Sprintf("%s/%d", rel.Service, i)
		if r.writeSettingsBy(byOneUnit, rel, unit, rel.RelatedUnits[name].Data) {
			hasSettings = true
		}
	}
	return hasSettings
}

// haveSameSettings reports whether all of the units have written the same settings, without regard to addresses. units
// must not be empty.
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

// settingsWriter is who writes settings on the other side of a relation. Its text is a part of file names.
type settingsWriter string

const (
	byApplication settingsWriter = "--app" // the leader, for the application
	byOneUnit     settingsWriter = "unit"  // one unit, for itself
	byAllUnits    settingsWriter = ""      // each unit, with the same settings
)

// splitSettings divides data into words KEY=VALUE, which must fit on a line, and the settings for a file. It leaves out
// addresses, since the stub has its own, and replaces secret values by placeholders.
func splitSettings(data map[string]string) (pairs []string, inFile map[string]string) {
	inFile = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if isOwnAddress(name) {
			continue
		}

		value := placeholder(name, data[name])
		if isLine(value) && isLine(name) {
			pairs = append(pairs, name+"="+value)
		} else {
			inFile[name] = value
		}
	}

	return pairs, inFile
}

// writeSettingsBy adds the commands that set data in the relation on behalf of writer. It leaves out addresses, since
// the stub has its own, and replaces secret values by placeholders. Values that do not fit on a line go to a file,
// which relation-set can read and stub set cannot. unit is the unit that runs relation-set: with byOneUnit the writer,
// and otherwise the stub's first unit. writeSettingsBy returns false if there are no settings.
func (r *replay) writeSettingsBy(
	writer settingsWriter,
	rel status.RelationDetail,
	unit string,
	data map[string]string,
) (hasSettings bool) {
	pairs, inFile := splitSettings(data)
	relationSet := []string{"juju", "do", "--unit", unit, "relation-set", "--relation", rel.RelatedEndpoint}
	stubSet := []string{"stub", "set"}
	if writer == byApplication {
		stubSet = append(stubSet, "--app")
	}
	stubSet = append(stubSet, rel.Service, rel.RelatedEndpoint)

	switch {
	case len(pairs) == 0:
		// All settings are in the file below, or there are none.
	case writer == byOneUnit:
		r.call(slices.Concat(relationSet, pairs)...)
	default:
		r.call(slices.Concat(stubSet, pairs)...)
	}
	// relation-set is for one unit. With byAllUnits that suffices: the caller then has values for a file only if the
	// other side has a single unit.
	if len(inFile) > 0 {
		unitPart := strings.ReplaceAll(unit, "/", "-")
		file := fmt.Sprintf("replay-%s-%s%s.yaml", unitPart, rel.RelatedEndpoint, writer)
		r.addFile(file, inFile)
		words := slices.Concat(relationSet, []string{"--file", file})
		if writer == byApplication {
			words = append(words, "--app")
		}
		r.call(words...)
	}

	return len(pairs) > 0 || len(inFile) > 0
}

// deployEvent writes the commands that deploy the charm with its relations, which makes the hook run.
func (r *replay) deployEvent() {
	r.writeHookComment()
	r.deploy(optionsAtDeploy)
	// chooseEvent has left at most one relation: that of a subordinate with its principal.
	for _, rel := range r.unit.Relations {
		r.relate(rel)
	}
}

// configEvent writes a deployment with the charm's default options, and then a command that sets the options,
// which makes the hook run. If no options are set, it writes a comment instead of the command, since the hook
// also runs in the deployment.
func (r *replay) configEvent() {
	r.prepare(optionsLater, noRelation)
	r.writeHookComment()
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

// updateStatusEvent writes commands that make the hook update-status run every second, and wait for its first
// run.
func (r *replay) updateStatusEvent() {
	r.prepare(optionsAtDeploy, noRelation)
	r.writeHookComment()
	r.call("juju", "set-environment", state.StatusInterval+"=1s")
	r.call("eventually", "30s", "update-status", "juju", "hook-history", r.service+"/0")
}

// upgradeEvent writes a deployment of the charm, and its upgrade to a copy of itself with one more file,
// which makes the hook run.
func (r *replay) upgradeEvent() {
	r.line("# The previous version of the charm is not known. This version is deployed, and then upgraded to a copy of itself with one more file.")
	r.prepare(optionsAtDeploy, noRelation)
	r.writeHookComment()
	// The script's working directory is a copy of the charm, so this adds a file to the charm. Its content, the output
	// of the last command, does not matter.
	r.call("cp", "stdout", "replay-upgraded")
	r.call("juju", "refresh", r.service, "--path", ".")
}

// removeEvent writes a deployment of the charm, and the removal of the unit, which makes the hook run.
func (r *replay) removeEvent() {
	r.prepare(optionsAtDeploy, noRelation)
	r.writeHookComment()
	r.call("juju", "remove-unit", r.hostService()+"/0")
}

// peerEvent writes a deployment of the charm, and the addition or removal of a further unit, which makes the
// hook of the peer relation run.
func (r *replay) peerEvent(kind string) {
	r.prepare(optionsAtDeploy, noRelation)
	hasPeerLeft := kind == "departed" || kind == "broken"
	if !hasPeerLeft {
		r.writeHookComment()
		r.call("juju", "add-unit", r.hostService())
		return
	}

	// The unit no longer lists the peer that has left, so the script adds a peer, and then removes it.
	r.call("juju", "add-unit", r.hostService())
	r.settle()
	r.writeHookComment()
	r.call("juju", "remove-unit", r.hostService()+"/1")
}

// relationEvent writes a deployment of the charm, and commands that make the hook of this kind run in the
// relation. Depending on the kind, the commands add the relation, write settings on the other side, or remove
// the relation or a unit of the other side.
func (r *replay) relationEvent(rel status.RelationDetail, kind string) {
	// For a relation that the unit has lost, the script may not have a stub yet.
	r.addStub(rel)
	r.prepare(optionsAtDeploy, &rel)
	switch kind {
	case "created", "joined":
		r.writeHookComment()
		r.relate(rel)
		return
	case "changed":
		r.changedEvent(rel)
		return
	}

	// The hook is departed or broken, so the relation must begin before it can end.
	r.relate(rel)
	r.settle()
	isLost := rel.ID == 0 && len(rel.RelatedUnits) == 0
	if isLost {
		r.line("# The settings of the other application are not known, because the relation has been removed.")
	}
	hasApp := r.writeSettings(rel, applicationSide)
	hasUnits := r.writeSettings(rel, unitSide)
	if hasApp || hasUnits {
		r.settle()
	}

	r.writeHookComment()
	// The removal of one remote unit makes departed run. Otherwise the script removes the whole relation.
	if kind == "departed" && len(rel.RelatedUnits) > 0 {
		r.call("juju", "remove-unit", r.remoteHere(rel))
		return
	}
	r.call("juju", "remove-relation", r.service+":"+rel.Endpoint, rel.Service+":"+rel.RelatedEndpoint)
}

// changedEvent writes the commands that add the relation, and that write the settings of the other side's
// application and units. The settings that made the hook run come last.
func (r *replay) changedEvent(rel status.RelationDetail) {
	first := applicationSide
	last := unitSide
	isRemoteApplication := !strings.Contains(r.run.Remote, "/")
	if isRemoteApplication {
		first = unitSide
		last = applicationSide
	}

	r.relate(rel)
	r.settle()
	if r.writeSettings(rel, first) {
		r.settle()
	}
	r.writeHookComment()
	if !r.writeSettings(rel, last) {
		r.line("# The other application has written no other settings.")
	}
}

// remoteHere returns the unit or application in the script that stands for the hook's remote unit or
// application. If the relation no longer has the remote unit, unit 0 stands for it.
func (r *replay) remoteHere(rel status.RelationDetail) string {
	if !strings.Contains(r.run.Remote, "/") {
		return rel.Service
	}
	// In the script, the stub's units have the numbers 0, 1 and so on, in the order of these names.
	names := slices.Sorted(maps.Keys(rel.RelatedUnits))
	return fmt.Sprintf("%s/%d", rel.Service, max(0, slices.Index(names, r.run.Remote)))
}

// writeHookComment writes a comment with the hook's name. It comes before the command that makes the hook run.
func (r *replay) writeHookComment() { r.line("\n# %s", r.hookAndRemote()) }

// writeEnd writes the commands that check the results: no unit is in error, the hook has run, and the other
// sides have received the settings that the unit has written. For the hooks stop and remove, it does not check
// settings.
func (r *replay) writeEnd() {
	// The command settled fails if a unit is in error.
	r.settle()
	r.call("journal", r.service+"/0")
	r.call("stdout", "^"+r.regexpOfRun())

	isRemoved := r.run.Hook == "stop" || r.run.Hook == "remove"
	if isRemoved {
		// A removed unit has no settings.
		return
	}
	for _, rel := range r.unit.Relations {
		if r.isPeer(rel) {
			continue
		}
		r.writeSaw(rel, unitSettings, rel.LocalUnit.Data)
		if r.unit.Leader {
			r.writeSaw(rel, appSettings, rel.LocalAppData)
		}
	}
}

// isWrittenLater reports whether a later hook has written, or may have written, this setting of the unit. If
// isApp is set, the setting belongs to the unit's application.
func (r *replay) isWrittenLater(relationID int, name string, isApp bool) bool {
	owner := r.name
	if isApp {
		owner = r.service
	}

	begin := fmt.Sprintf("relation-%d of %s: setting changed: %q=", relationID, owner, name)
	isOfSetting := func(change string) bool { return strings.HasPrefix(change, begin) }
	return slices.ContainsFunc(r.later, func(run status.HookRun) bool {
		// A change that is not in the history may be one of this setting.
		hasOmittedChanges := run.More > 0
		return hasOmittedChanges || slices.ContainsFunc(run.Changes, isOfSetting)
	})
}

// regexpOfRun returns a regular expression that matches the beginning of the hook's line in the journal.
func (r *replay) regexpOfRun() string {
	line := r.service + "/0 " + r.run.Hook
	relation, _ := r.relationOfHook()
	// In the script, the peer that makes the hook run can have a different number.
	if relation != nil && !r.isPeer(*relation) && r.run.Remote != "" {
		line += " " + r.remoteHere(*relation)
	}
	return regexp.QuoteMeta(line)
}

// settingOwner is the owner of settings on the charm's own side of a relation.
type settingOwner bool

const (
	unitSettings settingOwner = false
	appSettings  settingOwner = true
)

// writeSaw writes the command `stub saw`, which checks that the other side of the relation has received the
// settings in data. It leaves out addresses, and settings that a later hook has changed or may have changed,
// since these can differ in the script. If the script cannot reproduce a value, the command has only the
// setting's name. writeSaw writes nothing if no settings are left.
func (r *replay) writeSaw(rel status.RelationDetail, owner settingOwner, data map[string]string) {
	isApp := owner == appSettings
	var settings []string
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if isOwnAddress(name) || r.isWrittenLater(rel.ID, name, isApp) {
			continue
		}

		// In the script, the unit has the number 0.
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

// isReproducible reports whether the unit can write the same value in the script. The value must fit on a
// line, and must not contain a hidden part or an address of the unit.
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

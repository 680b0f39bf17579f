package juju

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/number"
)

type configCmd struct {
	Service    string   `arg:"" name:"application" help:"The application."`
	Words      []string `arg:"" optional:"" name:"option" help:"Print only the value of this option. With OPTION=VALUE or OPTION=@FILE, set options."`
	Format     string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"Print as yaml or json; default yaml."`
	outputFlag `embed:""`
	File       []string `sep:"none" placeholder:"FILE" help:"Set the options in this YAML file, in the form of deploy --config or of the output of juju config; - is stdin, and options on the command line override."`
	History    bool     `help:"Show who last set which options, and when, without the values."`
	resetFlags
	waitFlags
}

// serviceSettings are the options of a service as juju config prints them.
type serviceSettings struct {
	Service  string             `yaml:"service" json:"application"`
	Charm    string             `yaml:"charm" json:"charm"`
	Settings map[string]setting `yaml:"settings" json:"settings"`
	Juju     map[string]setting `yaml:"-" json:"application-config"` // Juju's own settings of the application
}

// setting is an option with its value as juju config prints them.
type setting struct {
	Type        string `yaml:"type" json:"type"`
	Description string `yaml:"description,omitempty" json:"description,omitempty"`
	Value       any    `yaml:"value" json:"value,omitempty"`
	Default     bool   `yaml:"default,omitempty" json:"-"` // the value is the charm's default
	Source      string `yaml:"-" json:"source"`            // "default" or "user", as in Juju 3
}

// Run prints all options, the value of one option, or the history. If the flags and words change options, Run
// does the work of set and unset instead.
func (c configCmd) Run(o *operator) error {
	if c.History {
		return c.showHistory(o)
	}
	if c.asks(c.Words) && len(c.File) == 0 { // no word, --reset or --file changes an option
		return c.show(o)
	}
	return setCmd{Service: c.Service, Options: c.Words, Config: c.File, reset: c.Reset}.Run(o)
}

// show prints all options of the service, or the value of one option. It prints nothing for an option without
// a value, and returns an error for an option that the charm does not have.
func (c configCmd) show(o *operator) error {
	doc, err := readChosen(o, func(v *state.View) (serviceSettings, error) { return c.readSettings(o, v) })
	if err != nil {
		return err
	}
	if len(c.Words) == 0 {
		return o.encode(c.Format, doc)
	}

	found, ok := doc.Settings[c.Words[0]]
	if !ok {
		return console.Hint(fmt.Errorf("application %q has no option %q", c.Service, c.Words[0]),
			"juju config "+quoteShellWords([]string{c.Service})+" shows all")
	}

	if found.Value == nil {
		return nil
	}

	_, err = fmt.Fprintln(o.streams.Out, found.Value)
	return err
}

// mergeSettings returns all options of the schema, with their values in set. An option that set lacks has its
// default. If a value in set no longer has the option's type, the option has its default, but still counts as set.
func mergeSettings(schema *charm.Config, set map[string]any) map[string]setting {
	merged := map[string]setting{}
	effective := schema.Effective(set)
	for name, option := range schema.Options {
		_, isSet := set[name]
		merged[name] = setting{
			Type:        string(option.Type),
			Description: option.Description,
			Value:       number.ForPrinting(effective[name]),
			Default:     !isSet,
			Source:      settingSource(isSet),
		}
	}

	return merged
}

// settingSource returns Juju 3's word for the source of an option's value.
func settingSource(isSet bool) string {
	if isSet {
		return "user"
	}
	return "default"
}

// hintKubectl returns the juju command that corresponds to `kubectl get` or `kubectl config` with the words
// of args. It returns "" for any other words. isModel reports whether a model of that name exists. If
// kubectl's namespace names a model, the juju command is for that model.
func hintKubectl(args []string, isModel func(name string) bool) string {
	words := args[commandAt(args)+1:] // without the command
	asked := readQuery(words)
	asked.names.model = modelGiven(args)
	// The namespace of the query overrides juju's own -m, which can stand before the command.
	if isModel(asked.namespace) {
		asked.names.model = asked.namespace
	}

	switch asked.kind {
	case "view", "get-contexts", "current-context", "get-clusters":
		return "juju models"
	case "use-context", "set-context":
		return cmp.Or(switchHint(words, asked.names), "juju switch NAME")
	}

	if !isKind(asked.kind) {
		// The first word may be the name of an application that does not exist.
		return ""
	}
	return asked.hint()
}

// query is a command line of kubectl get or kubectl config, without its first word.
type query struct {
	kind      string // the first word that is not an option, such as pods, or use-context in kubectl config
	names     givenNames
	app       string // the value of a selector, such as web in -l app=web
	format    string // json or yaml if -o selects one of them; otherwise empty
	namespace string
	watch     bool
}

// readQuery parses the words after kubectl get or kubectl config.
func readQuery(words []string) (q query) {
	var others []string // the words that are none of the options below
	for i := 0; i < len(words); i++ {
		option, value, joined := strings.Cut(words[i], "=")
		if !joined && i+1 < len(words) && takesValue(option) {
			i++
			value = words[i]
		}

		switch option {
		case "-l", "--selector":
			// The value is LABEL=APPLICATION, such as app=web.
			_, q.app, _ = strings.Cut(value, "=")
		case "-o", "--output", "-ojson", "-oyaml":
			// -ojson and -oyaml contain their value.
			value = cmp.Or(value, strings.TrimPrefix(option, "-o"))
			if value == "json" || value == "yaml" {
				q.format = value
			}
		case "-n", "--namespace":
			q.namespace = value
		case "-w", "--watch":
			q.watch = true
		default:
			// Of an option with a value of its own, such as -m MODEL, words[i] is now the value.
			if joined || !takesValue(option) {
				others = append(others, words[i])
			}
		}
	}

	// Options that have no meaning for juju's command are left out.
	others = slices.DeleteFunc(others, func(word string) bool { return strings.HasPrefix(word, "-") })
	if len(others) == 0 {
		return q
	}

	// The first word is a kind, KIND/NAME, or a subcommand of kubectl config.
	q.kind, _, _ = strings.Cut(others[0], "/")
	if !isKind(q.kind) {
		// Unlike a kind, a subcommand would count as a name.
		q.names = readNames(others[1:])
		return q
	}

	q.names = readNames(others) // skips the kind, and takes the name of KIND/NAME
	if q.app != "" {
		q.names.add(q.app)
	}
	return q
}

// hint returns the juju command line that corresponds to `kubectl get KIND`, with the names and the output
// format of the query. Of several kinds, such as pods,services, the first one decides.
func (q query) hint() string {
	kind, _, _ := strings.Cut(q.kind, ",")
	commands, hasFormat := commandsOfKind(kind)
	if commands == nil {
		// For all other kinds, the command shows applications and units.
		commands, hasFormat = q.commandsOfWorkload()
	}

	hint := missing{instead: commands}.advise(q.names) // the command that fits, with names in place of its placeholders
	if q.format != "" && hasFormat {
		hint += " --format " + q.format
	}
	return hint
}

// commandsOfKind returns the juju commands that print the objects of a kind of kubectl, in the form of
// [missing].instead. It returns nil for a kind without commands of its own, such as pod or deployment. hasFormat
// reports whether the commands take --format.
func commandsOfKind(kind string) (commands []string, hasFormat bool) {
	switch kind {
	case "no", "node", "nodes":
		return []string{"juju show-machine MACHINE", "juju machines"}, true
	case "secret", "secrets":
		return []string{"juju show-secret APP", "juju secrets"}, true
	case "ev", "event", "events":
		return []string{"juju debug-log"}, false
	case "storage", "pv", "pvc":
		return []string{"juju storage"}, true
	case "cm", "configmap", "configmaps":
		return []string{"juju config APP", "juju status"}, true
	case "ns", "namespace", "namespaces":
		return []string{"juju models"}, true
	}

	return nil, false
}

// commandsOfWorkload returns the juju commands that print the applications and units of the query, in the
// form of [missing].instead. hasFormat reports whether the commands take --format.
func (q query) commandsOfWorkload() (commands []string, hasFormat bool) {
	hasUnit := len(q.names.units) > 0
	if !hasUnit && q.watch {
		return []string{"juju status --watch 1s APP", "juju status --watch 1s"}, false
	}

	// In kubectl, a selector selects the pods of an application, and a name stands for the application itself.
	namesApp := len(q.names.apps) == 1 && q.app == ""
	if !hasUnit && namesApp {
		return []string{"juju show-application APP"}, true
	}

	return []string{"juju show-unit UNIT", "juju status APP", "juju status"}, true
}

// readSettings reads the service's options, and Juju's own setting trust. If a word of kubectl stands in
// place of the service, the error has a hint with the juju command.
func (c configCmd) readSettings(o *operator, v *state.View) (doc serviceSettings, err error) {
	s, err := v.Service(c.Service)
	// As in kubectl get pods, the first word can be a kind instead of a service.
	if errors.Is(err, state.ErrNotFound) {
		if hint := hintKubectl(o.args, o.hasEnvironment); hint != "" {
			return doc, console.Hint(fmt.Errorf("%q is not an application", c.Service), hint)
		}
	}
	if err != nil {
		return doc, err
	}
	ch, err := v.Charm(s.Charm)
	if err != nil {
		return doc, err
	}

	set, err := v.Config(c.Service)
	if err != nil {
		return doc, err
	}

	trust := setting{
		Type:        "bool",
		Description: "Whether its units get the cloud's credential",
		Value:       s.Trusted,
		Source:      settingSource(s.Trusted),
	}

	return serviceSettings{
		Service:  s.Name,
		Charm:    s.Charm,
		Settings: mergeSettings(&ch.Config, set.Values),
		Juju:     map[string]setting{"trust": trust},
	}, nil
}

package release

// What a step does with its component.
const (
	Stop   = "stop"
	Update = "update"
)

// Step is one step of an update. Before each, all servers wait for one another.
type Step struct {
	Number    int       // from 1
	Name      string    // COMPONENT/ACTION
	Action    string    // Stop or Update
	Component Component // what it is about
}

// Steps returns the manifest's steps. Nothing else knows their number: the last step is
// the last one of the list.
func (m Manifest) Steps() []Step {
	var steps []Step
	add := func(action string, c Component) {
		steps = append(steps, Step{Number: len(steps) + 1, Name: c.Name + "/" + action, Action: action, Component: c})
	}
	for _, c := range m.Components {
		if c.Strategy == StopAll {
			add(Stop, c)
		}
		add(Update, c)
	}
	return steps
}

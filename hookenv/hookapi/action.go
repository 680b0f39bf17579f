package hookapi

import "context"

// Action is an action that an operator has asked for and that runs as a hook.
type Action struct {
	ID         string
	Name       string
	Parameters map[string]any // with the defaults of the charm's schema
}

// Actions answers the tools of a running action. All but Action fail with
// ErrNoAction in any other hook.
type Actions interface {
	// Action returns the action that runs. ErrNoAction.
	Action(ctx context.Context) (Action, error)
	// SetResults merges results into those that the action returns: dictionaries
	// key by key, everything else replaced.
	SetResults(ctx context.Context, results map[string]any) error
	// FailAction makes the action fail with a message, whatever its exit code;
	// the last message counts.
	FailAction(ctx context.Context, message string) error
	// LogAction reports progress at once to the operator who waits.
	LogAction(ctx context.Context, message string) error
}

// Resources answers where the charm's resources lie.
type Resources interface {
	// Resource returns the absolute path of a resource's file, fetched and verified.
	// ErrUnknownResource.
	Resource(ctx context.Context, name string) (path string, err error)
}

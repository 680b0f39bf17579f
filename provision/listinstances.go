package provision

import (
	"context"
	"fmt"

	"bijou/provision/provider"
)

// listFailure says for how long the provider has not listed its instances, and why.
type listFailure struct {
	retryBackoff
	err error
}

// After an error the provider is asked again later and later, whatever changes meanwhile.
func (l *leader) listInstances(ctx context.Context) ([]provider.Instance, error) {
	if l.Now().Before(l.listFailure.due) {
		return nil, l.listFailure.err
	}
	asked, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	have, err := l.Provider.Instances(asked)
	switch {
	case err == nil:
		l.listFailure = listFailure{}
		return have, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case asked.Err() != nil:
		err = fmt.Errorf("the provider has not answered for %s", listTimeout)
	}
	n := l.listFailure.attempts
	l.listFailure = listFailure{
		retryBackoff{n + 1, l.Now().Add(min(retryDelay(n), planInterval))},
		fmt.Errorf("cannot list instances, so none is started or stopped: %w", err),
	}
	return nil, l.listFailure.err
}

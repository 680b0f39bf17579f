package state

import (
	"context"
	"errors"
	"fmt"

	"bijou/state/store"
	"bijou/state/store/sqlite"
)

// openStore opens the store that the URL names.
func openStore(ctx context.Context, url string) (store.Store, error) {
	scheme, rest, err := splitURL(url)
	if err != nil {
		return nil, err
	}
	switch scheme {
	case "sqlite":
		return sqlite.Open(ctx, rest)
	}
	return nil, unknownScheme(url, scheme)
}

// createStore makes the store that the URL names, unless it is there, and opens it.
func createStore(ctx context.Context, url string) (store.Store, error) {
	scheme, rest, err := splitURL(url)
	if err != nil {
		return nil, err
	}
	switch scheme {
	case "sqlite":
		if err := sqlite.Create(ctx, rest); err != nil && !errors.Is(err, store.ErrExists) {
			return nil, err
		}
		return sqlite.Open(ctx, rest)
	}
	return nil, unknownScheme(url, scheme)
}

func unknownScheme(url, scheme string) error {
	if scheme == "mem" {
		return fmt.Errorf("cannot use state URL %q: a store in memory lives in one process only, and is for tests: want sqlite:PATH", url)
	}
	return fmt.Errorf("cannot use state URL %q: unknown kind of store %q: want sqlite:PATH", url, scheme)
}

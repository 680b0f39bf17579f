package remote

import (
	"context"
	"encoding/json"
	"fmt"

	"bijou/state/secret"
	"bijou/state/store/remote/protocol"
)

// SecretKeeper returns a keeper that lets the gateway seal and open secrets.
func (d *db) SecretKeeper() secret.Keeper { return keeper{d} }

type keeper struct{ d *db }

func (k keeper) Sealer(ctx context.Context) (secret.Sealer, error) { return sealer{ctx, k.d}, nil }

// sealer seals and opens secrets until its context ends.
type sealer struct {
	ctx context.Context
	d   *db
}

// Seal lets the gateway encrypt the content as a revision of the secret.
func (s sealer) Seal(r *secret.Record, revision int, c secret.Content) (sealed secret.Sealed, err error) {
	plain, err := json.Marshal(c)
	if err != nil {
		return sealed, fmt.Errorf("cannot seal secret %q: %w", r.ID, err)
	}

	err = s.d.retry(s.ctx, func(ctx context.Context) error {
		response, err := s.d.client.Seal(ctx, &protocol.SealRequest{
			Id: r.ID, Revision: int64(revision), Origin: r.Origin, Plain: plain,
		})
		// After an error, response is nil, and its getters return nothing.
		sealed = secret.Sealed{Key: response.GetKey(), Data: response.GetData()}
		return err
	})
	return sealed, err
}

// Open lets the gateway decrypt a revision of the secret.
func (s sealer) Open(r *secret.Record, revision int, sealed secret.Sealed) (c secret.Content, err error) {
	err = s.d.retry(s.ctx, func(ctx context.Context) error {
		response, err := s.d.client.Open(ctx, &protocol.OpenRequest{
			Id: r.ID, Revision: int64(revision), Key: sealed.Key, Data: sealed.Data,
		})
		if err != nil {
			return err
		}
		return json.Unmarshal(response.GetPlain(), &c)
	})
	return c, err
}

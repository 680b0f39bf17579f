package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"bijou/state/keys"
	"bijou/state/secret"
	"bijou/state/store"
	"bijou/state/store/remote/protocol"
)

// ServeSecrets makes the gateway seal and open secrets with the keeper's keys. It must be called before Listen.
func (g *Gateway) ServeSecrets(k secret.Keeper) { g.secrets = k }

// Seal seals content for a secret that the identity can write, or for a secret that does not exist yet.
func (s *session) Seal(ctx context.Context, request *protocol.SealRequest) (*protocol.SealResponse, error) {
	sealed, err := s.seal(ctx, request)
	if err != nil {
		return nil, protocol.ToStatus(err)
	}
	return &protocol.SealResponse{Key: sealed.Key, Data: sealed.Data}, nil
}

// seal seals content for the identity, as a revision of a secret. It returns store.ErrDenied if the secret
// exists and the identity has no right to add the content, or if the request's id is not the id of a secret.
// The caller must not use the sealed content if seal returns an error.
func (s *session) seal(ctx context.Context, request *protocol.SealRequest) (sealed secret.Sealed, err error) {
	var content secret.Content
	if err := json.Unmarshal(request.GetPlain(), &content); err != nil {
		// The error of Unmarshal could quote the content.
		return sealed, errors.New("cannot seal content that is not JSON")
	}
	if err := content.Check(); err != nil {
		return sealed, err
	}

	v, closeView, err := s.openView(ctx)
	if err != nil {
		return sealed, err
	}
	defer closeView()

	r, exists, err := v.readSecret(ctx, request.GetId())
	if err != nil {
		return sealed, err
	}
	sealer, err := secret.SealerOf(ctx, s.g.secrets)
	if err != nil {
		return sealed, err
	}

	revision := int(request.GetRevision())
	if !exists {
		// The commit decides whether the identity can make the secret. The sealed content can only be opened
		// as this revision of this secret.
		return sealer.Seal(&secret.Record{ID: r.ID, Origin: request.GetOrigin()}, revision, content)
	}

	sealed, err = sealer.Seal(&r, revision, content)
	if err != nil {
		return sealed, err
	}
	return sealed, v.mayAddContent(ctx, r, revision, sealed)
}

// maxCheckedContent limits the part of the sealed content that mayAddContent passes to the rights, in bytes.
const maxCheckedContent = 1 << 10

// mayAddContent returns an error unless the identity can commit the content together with the secret's
// record, to which the commit adds the content's revision.
func (v *view) mayAddContent(ctx context.Context, r secret.Record, revision int, sealed secret.Sealed) error {
	// Agents write large content as a blob, so the rights must not refuse it by its size.
	sealed.Data = sealed.Data[:min(len(sealed.Data), maxCheckedContent)]
	content, err := json.Marshal(sealed)
	if err != nil {
		return err
	}

	// Read the value that r was decoded from, since r lacks the members that this binary does not know.
	kv, _, err := v.snap.Get(ctx, keys.Secret(r.ID))
	if err != nil {
		return err
	}
	record, err := addRevision(kv.Value, r, revision)
	if err != nil {
		return err
	}

	return v.rights.MayCommit(ctx, []store.Op{
		{Key: keys.Secret(r.ID), Value: record},
		{Key: keys.SecretContent(r.ID, revision), Value: content},
	})
}

// addRevision returns the value of a secret's record with one more revision. It keeps all other members of
// the value, except the latest revision, which can become greater. If the record has the revision, addRevision
// returns the value unchanged.
func addRevision(value []byte, r secret.Record, revision int) ([]byte, error) {
	revisions := maps.Clone(r.Revisions)
	if revisions == nil {
		revisions = map[int]secret.Revision{}
	}
	if _, exists := revisions[revision]; exists {
		return value, nil
	}
	revisions[revision] = secret.Revision{}

	var members map[string]json.RawMessage
	if err := json.Unmarshal(value, &members); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(revisions)
	if err != nil {
		return nil, err
	}
	members["revisions"] = encoded
	members["latest"] = strconv.AppendInt(nil, int64(max(r.Latest, revision)), 10)
	return json.Marshal(members)
}

// Open opens sealed content that the identity currently has the right to read.
func (s *session) Open(ctx context.Context, request *protocol.OpenRequest) (*protocol.OpenResponse, error) {
	content, err := s.open(ctx, request)
	if err != nil {
		return nil, protocol.ToStatus(err)
	}

	plain, err := json.Marshal(content)
	if err != nil {
		return nil, protocol.ToStatus(err)
	}
	return &protocol.OpenResponse{Plain: plain}, nil
}

// open opens sealed content for the identity. It returns store.ErrDenied if the identity cannot read the secret's
// content, or if the request's id is not the id of a secret. It returns a different error if no such secret
// exists, or if the secret has no content for the revision.
func (s *session) open(ctx context.Context, request *protocol.OpenRequest) (secret.Content, error) {
	v, closeView, err := s.openView(ctx)
	if err != nil {
		return nil, err
	}
	defer closeView()

	r, exists, err := v.readSecret(ctx, request.GetId())
	if err != nil {
		return nil, err
	}
	revision := int(request.GetRevision())

	// get checks the right to read content that exists. Content that was removed must not be opened, even if
	// the identity still has the sealed data. All identities can find out that content does not exist.
	_, hasContent, err := v.get(ctx, keys.SecretContent(r.ID, revision))
	if err != nil {
		return nil, err
	}
	if !exists || !hasContent {
		return nil, fmt.Errorf("cannot open revision %d of secret %q: it does not exist", revision, r.ID)
	}

	sealer, err := secret.SealerOf(ctx, s.g.secrets)
	if err != nil {
		return nil, err
	}
	return sealer.Open(&r, revision, secret.Sealed{Key: request.GetKey(), Data: request.GetData()})
}

// readSecret reads the record of a secret without checking the rights. exists is false if no secret has the id,
// and r then has only the id. readSecret returns store.ErrDenied if the text is not the id of a secret.
func (v *view) readSecret(ctx context.Context, id string) (r secret.Record, exists bool, err error) {
	// ParseID also accepts a URI, for which it returns only the id.
	if parsed, err := secret.ParseID(id); err != nil || parsed != id {
		return r, false, fmt.Errorf("%w: %q is not the id of a secret", store.ErrDenied, id)
	}

	kv, exists, err := v.snap.Get(ctx, keys.Secret(id))
	if err == nil && exists {
		err = json.Unmarshal(kv.Value, &r)
	}
	r.ID = id
	return r, exists, err
}

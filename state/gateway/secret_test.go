package gateway_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"bijou/state/gateway"
	"bijou/state/secret"
	"bijou/state/secret/keyfile"
	"bijou/state/store"
	"bijou/state/store/remote"
	"bijou/testscripts/fakes/memstore"
)

// secretWorld has a secret of a/0 on machine 1. b/0 on machine 2 can read it, and c/0 on machine 3 cannot.
type secretWorld struct {
	*world
	ring   secret.Keyring
	record secret.Record
	sealed secret.Sealed
}

func newSecretWorld(t *testing.T) *secretWorld {
	t.Helper()
	w := &secretWorld{world: &world{T: t, base: memstore.New(), dir: t.TempDir()}, ring: secret.Keyring{secret.NewKey()}}
	t.Cleanup(func() { w.base.Close() })
	var err error
	w.g, err = gateway.New(w.base, gateway.Table{})
	w.ok(err)
	file := keyfile.In(w.dir)
	w.ok(file.Write(w.ring))
	w.g.ServeSecrets(file)

	w.record = secret.Record{ID: secret.NewID(time.Now()), Origin: "of-before"}
	w.sealed, err = w.ring.Seal(&w.record, 1, secret.Content{"password": []byte("s3cr3t")})
	w.ok(err)
	w.put(
		"machines/1", `{}`, "machines/2", `{}`, "machines/3", `{}`, "relations/0", `{"endpoints":[{"service":"a"},{"service":"b"}]}`,
		"units/a/0", `{"machine":"1"}`, "units/b/0", `{"machine":"2"}`, "units/c/0", `{"machine":"3"}`,
		"machines/1/units/a/0", "", "machines/2/units/b/0", "", "machines/3/units/c/0", "",
	)
	w.grant(`[{"relation":0,"service":"b"}]`)
	w.put("secret-contents/"+w.record.ID+"/1", `{"key":"`+w.sealed.Key+`"}`)
	return w
}

func (w *secretWorld) grant(grants string) {
	w.Helper()
	w.put("secrets/"+w.record.ID, `{"origin":"of-before","owner":{"unit":"a/0"},"latest":1,"revisions":{"1":{}},"grants":`+grants+`}`)
}

// sealer returns the sealer of the machine's agent.
func (w *secretWorld) sealer(machine string) secret.Sealer {
	w.Helper()
	socket := filepath.Join(w.dir, "socket-"+machine)
	e, err := w.g.Listen(gateway.Agent(machine), socket)
	w.ok(err)
	w.T.Cleanup(e.Close)
	s, err := remote.Open(w.Context(), "bijou+unix://"+socket)
	w.ok(err)
	w.T.Cleanup(func() { s.Close() })
	by, err := s.(store.SecretHolder).SecretKeeper().Sealer(w.Context())
	w.ok(err)
	return by
}

// TestSecretsAreOpenedForReaders checks that the gateway opens only secrets that the agent can read at that
// moment.
func TestSecretsAreOpenedForReaders(t *testing.T) {
	w := newSecretWorld(t)
	owner, reader, other := w.sealer("1"), w.sealer("2"), w.sealer("3")
	for name, by := range map[string]secret.Sealer{"owner": owner, "reader": reader} {
		c, err := by.Open(&w.record, 1, w.sealed)
		w.ok(err)
		if string(c["password"]) != "s3cr3t" {
			t.Errorf("%s: got %q", name, c)
		}
	}
	_, err := other.Open(&w.record, 1, w.sealed)
	w.is(err, store.ErrDenied)

	w.grant(`[]`)
	_, err = reader.Open(&w.record, 1, w.sealed)
	w.is(err, store.ErrDenied)
	w.remove("secret-contents/" + w.record.ID + "/1")
	if _, err := owner.Open(&w.record, 1, w.sealed); err == nil {
		t.Error("a content that was removed is opened")
	}
}

// TestSecretsOpenAtTheirPlace checks that an agent cannot open the content of a different secret as the
// content of its own.
func TestSecretsOpenAtTheirPlace(t *testing.T) {
	w := newSecretWorld(t)
	other := w.sealer("3")
	own := secret.Record{ID: secret.NewID(time.Now()), Origin: "of-before"}
	w.put("secrets/"+own.ID, `{"origin":"of-before","owner":{"unit":"c/0"},"latest":1,"revisions":{"1":{}}}`, "secret-contents/"+own.ID+"/1", `{}`)
	if c, err := other.Open(&own, 1, w.sealed); err == nil {
		t.Errorf("opened: %q", c)
	}
	for _, id := range []string{"", "a/b", "../secrets", "secret:" + w.record.ID} {
		_, err := other.Open(&secret.Record{ID: id}, 1, w.sealed)
		w.is(err, store.ErrDenied)
	}
}

// TestSecretsAreSealedForOwners checks that holders of the keys can open what the gateway has sealed.
func TestSecretsAreSealedForOwners(t *testing.T) {
	w := newSecretWorld(t)
	owner, reader := w.sealer("1"), w.sealer("2")
	content := secret.Content{"password": []byte("n3w")}
	lying := w.record
	lying.Origin = "another" // the record in the store has the true origin
	sealed, err := owner.Seal(&lying, 2, content)
	w.ok(err)
	c, err := w.ring.Open(&w.record, 2, sealed)
	w.ok(err)
	w.equal(c, content)

	_, err = reader.Seal(&w.record, 2, content)
	w.is(err, store.ErrDenied)
	if _, err := owner.Seal(&w.record, 2, nil); err == nil {
		t.Error("no content is sealed")
	}

	fresh := secret.Record{ID: secret.NewID(time.Now()), Origin: "here"}
	sealed, err = reader.Seal(&fresh, 1, content)
	w.ok(err)
	c, err = w.ring.Open(&fresh, 1, sealed)
	w.ok(err)
	w.equal(c, content)
}

// TestSecretsWithoutKeys checks a gateway whose host does not have the file of keys.
func TestSecretsWithoutKeys(t *testing.T) {
	w := newSecretWorld(t)
	w.g.ServeSecrets(keyfile.In(filepath.Join(w.dir, "nowhere")))
	_, err := w.sealer("1").Open(&w.record, 1, w.sealed)
	if !errors.Is(err, secret.ErrNoKey) {
		t.Errorf("got %v", err)
	}
}

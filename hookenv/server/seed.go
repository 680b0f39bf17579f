package server

import (
	"errors"
	"strings"

	"bijou/hookenv"
	"bijou/hookenv/amp"
	"bijou/hookenv/client"
)

// The seed's commands and their arguments: "The socket" in spec/hooks.md. Its
// flush, sync and wait are reserved.
const (
	commandGet  = "get"
	commandSet  = "set"
	commandList = "list_relations"

	keyUnit     = "unit_name"
	keySetting  = "setting_name"
	keyBlob     = "json_blob"
	keyRelation = "relation_id" // optional
)

// seed runs one of the seed's commands.
func seed(r *registration, command string, box amp.Box) ([]pair, *refusal) {
	target := hookenv.Target{Relation: box.Value(keyRelation), Unit: box.Value(keyUnit)}
	switch command {
	case commandGet:
		value, err := hookenv.Get(r.ctx, r.hook, target, box.Value(keySetting))
		return []pair{{client.KeyValue, value}}, refused(r, err)
	case commandSet:
		err := hookenv.Set(r.ctx, r.hook, target, box.Value(keyBlob))
		return []pair{{"ok", "True"}}, refused(r, err)
	case commandList:
		ids, err := hookenv.Relations(r.ctx, r.hook)
		members := strings.Join(r.hook.Facts().Members, " ")
		return []pair{{"relations", strings.Join(ids, " ")}, {"members", members}}, refused(r, err)
	}
	return nil, &refusal{codeReserved, command + " is reserved"}
}

// refused makes an AMP error of an error; nil stays nil.
func refused(r *registration, err error) *refusal {
	switch {
	case err == nil:
		return nil
	case r.gone(err):
		ended := gone()
		return &ended
	case errors.Is(err, hookenv.ErrNoKey):
		return &refusal{codeKeyError, err.Error()}
	case hookenv.Refused(err):
		return &refusal{codeBadRequest, err.Error()}
	}
	return &refusal{codeTrouble, err.Error()}
}

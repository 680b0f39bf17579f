package server

import (
	"errors"
	"strings"

	"bijou/hookenv/amp"
	"bijou/hookenv/client"
	"bijou/hookenv/tools"
)

// Python Juju's commands and their arguments (docs/socket.md). Its flush, sync
// and wait are reserved.
const (
	commandGet  = "get"
	commandSet  = "set"
	commandList = "list_relations"

	keyUnit     = "unit_name"
	keySetting  = "setting_name"
	keyBlob     = "json_blob"
	keyRelation = "relation_id" // optional
)

func runCommand(r *registration, command string, box amp.Box) ([]pair, *refusal) {
	target := tools.Target{Relation: box.Value(keyRelation), Unit: box.Value(keyUnit)}
	switch command {
	case commandGet:
		value, err := tools.GetSetting(r.ctx, r.hook, target, box.Value(keySetting))
		return []pair{{client.KeyValue, value}}, toRefusal(r, err)
	case commandSet:
		err := tools.SetSettings(r.ctx, r.hook, target, box.Value(keyBlob))
		return []pair{{"ok", "True"}}, toRefusal(r, err)
	case commandList:
		ids, err := tools.ListRelationIDs(r.ctx, r.hook)
		members := strings.Join(r.hook.Facts().Members, " ")
		return []pair{{"relations", strings.Join(ids, " ")}, {"members", members}}, toRefusal(r, err)
	}
	return nil, &refusal{codeReserved, command + " is reserved"}
}

func toRefusal(r *registration, err error) *refusal {
	switch {
	case err == nil:
		return nil
	case r.isGone(err):
		ended := goneRefusal()
		return &ended
	case errors.Is(err, tools.ErrNoKey):
		return &refusal{codeKeyError, err.Error()}
	case tools.IsCallerError(err):
		return &refusal{codeBadRequest, err.Error()}
	}
	return &refusal{codeInternal, err.Error()}
}

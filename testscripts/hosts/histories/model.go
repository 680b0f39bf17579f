package histories

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

const (
	registers = 4
	slots     = 4
)

// world is the data that the processes share: registers with numbers, and slots that a session holds
// while it lives. An empty holder means none.
type world struct {
	Registers [registers]int
	Holders   [slots]string
}

// operation is an operation that a process begins. Its kind is one of the words below.
type operation struct {
	Kind    string `json:"kind"`
	From    int    `json:"from,omitempty"` // a register
	To      int    `json:"to,omitempty"`   // a register
	N       int    `json:"n,omitempty"`
	Slot    int    `json:"slot,omitempty"`
	Session string `json:"session,omitempty"`
}

const (
	opView = "view" // reads everything
	opMove = "move" // takes N from a register and adds it to another
	opPut  = "put"  // writes N into a register, without reading
	opHold = "hold" // acquires a slot for a session if the slot is free
	opDrop = "drop" // releases a slot if the session holds it
	opEnd  = "end"  // a session ends by itself, which frees all its slots
)

// outcome is the result that a process got. An operation without an outcome may have happened, or may happen
// later, or may never happen.
type outcome struct {
	Known bool  `json:"known"`
	World world `json:"world"` // the data that the operation read
}

// model defines which worlds an operation can lead to.
func model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{world{}} },
		Step: func(state, input, output any) []any {
			before, op, told := state.(world), input.(operation), output.(outcome)
			if told.Known && !agrees(before, op, told.World) {
				return nil
			}

			after := apply(before, op)
			if !told.Known && after != before {
				return []any{before, after}
			}
			return []any{after}
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
	return m.ToModel()
}

// agrees reports whether a process that did op in this world would have read the same.
func agrees(w world, op operation, read world) bool {
	switch op.Kind {
	case opView:
		return read == w
	case opMove:
		return read.Registers[op.From] == w.Registers[op.From] && read.Registers[op.To] == w.Registers[op.To]
	case opHold, opDrop:
		return read.Holders[op.Slot] == w.Holders[op.Slot]
	}
	return true // the operation read nothing
}

func apply(w world, op operation) world {
	switch op.Kind {
	case opMove:
		w.Registers[op.From] -= op.N
		w.Registers[op.To] += op.N
	case opPut:
		w.Registers[op.To] = op.N
	case opHold:
		if w.Holders[op.Slot] == "" {
			w.Holders[op.Slot] = op.Session
		}
	case opDrop:
		if w.Holders[op.Slot] == op.Session {
			w.Holders[op.Slot] = ""
		}
	case opEnd:
		for slot, holder := range w.Holders {
			if holder == op.Session {
				w.Holders[slot] = ""
			}
		}
	}
	return w
}

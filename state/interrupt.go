package state

import "bijou/state/keys"

// Interrupts reports whether an operator has asked for the end of that run.
func (u Unit) Interrupts(op Op) bool { return u.Interrupt != "" && u.Interrupt == op.ID }

// Interrupt asks for the end of the unit's running hook: its agent terminates it, so
// that it has failed, and does not retry it by itself. ErrNotFound: there is no such
// unit, or no hook runs.
func (tx *Tx) Interrupt(unit string) (Op, error) {
	u, err := tx.Unit(unit)
	if err != nil {
		return Op{}, err
	}
	op, ok, err := tx.Op(unit)
	if err == nil && !ok {
		err = refuse(ErrNotFound, "unit %q runs nothing", unit)
	}
	if err != nil {
		return Op{}, err
	}
	u.Interrupt = op.ID
	return op, tx.keys.Put(keys.Unit(unit), u)
}

package state

// Life is the state of an entity between its making and its removal. It never goes back.
type Life string

// The lives. Dying: to be removed, and its agent takes it down. Dead: taken down, its
// remover may remove it.
const (
	Alive Life = "alive"
	Dying Life = "dying"
	Dead  Life = "dead"
)

// UnlessAlive returns the life, but nothing for what is alive.
func UnlessAlive(l Life) Life {
	if l == Alive {
		return ""
	}
	return l
}

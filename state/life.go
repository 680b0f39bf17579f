package state

// Life is how far an entity is on its way. It never goes back.
type Life string

// The lives. Dying: wanted to go, its agent takes it down. Dead: taken down, its
// remover may remove it.
const (
	Alive Life = "alive"
	Dying Life = "dying"
	Dead  Life = "dead"
)

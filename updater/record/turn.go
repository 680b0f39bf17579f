package record

// Turn names the server that may take its member of a rolling component down. It is held
// without a lease until that member is healthy again: the turn of a server that died
// half-way is nobody else's until an operator unregisters it.
type Turn struct {
	Server  int `json:"server"`
	Request int `json:"request"` // at which it was taken
}

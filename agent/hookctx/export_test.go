package hookctx

// Reads returns how many times the hook has read from the store.
func (c *Context) Reads() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads
}

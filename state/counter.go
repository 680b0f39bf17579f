package state

// nextNumber takes the counter's next number, from 0. A number is never given twice in
// an environment, whatever happens to what it counted.
func (tx *Tx) nextNumber(counter string) (int, error) {
	n, _, err := load[int](tx.View, counter)
	if err != nil {
		return 0, err
	}
	return n, tx.put(counter, n+1)
}

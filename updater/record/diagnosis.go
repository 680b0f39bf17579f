package record

// Diagnosis is one thing about a boot server, and how it is.
type Diagnosis struct {
	What, How string
	Bad       bool
}

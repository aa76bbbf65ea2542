package object

// Namespace is a namespace with its labels, by which terms of pod affinity may select it.
// Immutable.
type Namespace struct {
	Name   string
	Labels map[string]string
	// Recorded is the API object in the form in which a record of the scheduler's inputs
	// holds it (edge/recording); "" unless a record is kept.
	Recorded string
}

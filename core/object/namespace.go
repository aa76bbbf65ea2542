package object

// Namespace is a namespace with its labels, by which terms of pod affinity may select it.
// Immutable.
type Namespace struct {
	Name   string
	Labels map[string]string
	// Recorded is as a Pod's.
	Recorded string
}

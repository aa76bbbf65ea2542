package object

// Namespace is what the scheduler knows of one namespace: the labels by which
// terms of pod affinity may select it. Immutable.
type Namespace struct {
	Name   string
	Labels map[string]string
	// Recorded is as a Pod's.
	Recorded string
}

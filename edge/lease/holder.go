package lease

// Holder is who holds the lease, as far as this process has seen; "" where it has not.
func (l *Lease) Holder() string { return l.elector.GetLeader() }

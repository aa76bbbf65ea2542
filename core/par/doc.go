// Package par splits work over cores: a static split into ranges, each worker
// writing to its own part of the output, so that no lock is needed and the
// result does not depend on the number of workers. It is the only place in
// core where goroutines are started.
package par

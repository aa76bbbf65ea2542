// Package par splits work over cores. The split into ranges is static, and each
// worker writes to its own part of the output. So there is no lock, and the
// result does not depend on the number of workers. Package par is the only
// place in core that starts goroutines.
package par

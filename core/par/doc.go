// Package par splits work over cores. The split into parts is static, and each part
// has its own place in the output. A core that is free takes the next part. So there is
// no lock, and the result depends neither on the number of workers nor on who took what.
// Package par is the only place in core that starts goroutines.
package par

// Package resource counts what pods ask for and nodes offer: vectors of int64
// in fixed units (milli-CPU, bytes, pieces), and the one formula for what a
// pod requests. All arithmetic saturates, so that absurd quantities stay
// absurd and never wrap around.
package resource

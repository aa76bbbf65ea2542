// Package generate makes small, hard clusters out of a seed: nodes that are
// nearly full, many equal choices, odd quantities, overlapping selectors,
// several plugins in play at once, and changes that arrive while pods wait. A
// world is plain API objects with the API server's defaults applied, so that
// any scheduler can be given the same one. The same mix and seed always make
// the same world.
package generate

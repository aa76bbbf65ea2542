// Package generate makes small, hard clusters from a seed: nodes that are
// nearly full, many equal choices, odd quantities, overlapping selectors,
// several plugins at once, and changes while pods wait. A world is plain API
// objects with the API server's defaults, so every scheduler can get the same
// world. The same mix and seed always make the same world.
package generate

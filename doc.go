// Package berth holds the rules of the house as tests: which way imports
// point, and what the core may not touch. The scheduler itself begins at
// core/machine (it decides) and edge/loop (it acts); see docs/overview.md.
package berth

// Package schedulinggates keeps pods out of the queue while
// spec.schedulingGates names a gate.
package schedulinggates

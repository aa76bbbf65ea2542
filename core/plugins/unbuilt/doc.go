// Package unbuilt stands in for in-tree plugins that Berth does not have yet. A
// pod that uses a hard constraint of such a plugin is rejected with a plain
// reason, as it might otherwise be placed where it must not run; all others
// pass. Soft constraints are ignored.
package unbuilt

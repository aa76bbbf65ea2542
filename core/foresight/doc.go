// Package foresight answers one question about pods that no node took: could this event
// help pods of this class? A queueing hint sees one plugin's side of an event. This package
// asks all plugins that rejected a pod what they say now of the node that the event is
// about. So a pod that fits nowhere is not tried at each pod that leaves some node.
//
// Of 10,000 waiting pods most are ruled out by their size, in nanoseconds (size.go); the
// others are asked about one class at a time (foresight.go).
package foresight

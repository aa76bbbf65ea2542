// Package object holds the objects that the scheduler knows, such as Pod and
// Node. edge/decode makes them from API objects and checks them once. An object
// is immutable: a change is a new value.
package object

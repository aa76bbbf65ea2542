// Package object holds the nouns of scheduling: Pod and Node, parsed once
// from API objects into values that cannot be wrong. They are immutable: a
// change is a new value. edge/decode makes them.
package object

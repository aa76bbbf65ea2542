// Package framework is the contract between the scheduler and its plugins:
// the extension points, what a plugin says about itself, and the events that
// bring rejected pods back. A Plugin is a value; the extension points that it
// implements are the fields that it sets.
package framework

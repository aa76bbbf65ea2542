// Package profile compiles configuration into a Profile: the plugins that
// serve one scheduler name, by extension point and in the order in which they
// run there.
package profile
